import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiError } from "../errors.ts";
import { wantsHtml } from "./accept.ts";
import { html, sendPage } from "./html.ts";
import { pathOf } from "./request-path.ts";

/** Ours to look at, and what signed links lead to. */
const PAGES =
  /^\/(auth|oauth\/interaction|dev)(\/|$)|^\/v1\/purchases\/[^/]+\/(download|receipt|receipt\.pdf)$/;

/** Whether somebody looks at this through a browser, so that a page says it better than JSON. */
export const isForPeople = (request: FastifyRequest): boolean =>
  PAGES.test(pathOf(request)) && wantsHtml(request);

/** An error as a page. */
export function sendErrorPage(request: FastifyRequest, reply: FastifyReply, error: ApiError) {
  if (error.retryAfterSeconds !== undefined) reply.header("retry-after", String(error.retryAfterSeconds));
  const { title, text } = wordsFor(error);
  return sendPage(reply, {
    title,
    status: error.status,
    main: html`<section class="card">
<h1>${title}</h1>
<p>${text}</p>
<div class="actions"><a class="button" href="/auth/signed-in">Go to your account</a></div>
<p class="small">If you ask somebody for help, name them this: <code>${request.id}</code></p>
</section>`,
  });
}

function wordsFor({ status, message }: ApiError): { title: string; text: string } {
  if (status === 404) {
    return {
      title: "There is no such page",
      text: "The address is mistyped or incomplete, or the page has moved.",
    };
  }
  if (status === 429) return { title: "That was too often", text: "Wait a moment, then try again." };
  if (status >= 500) {
    return {
      title: "Something went wrong on our side",
      text: "Nothing that you did caused this. Try again in a moment.",
    };
  }
  return { title: "This did not work", text: message };
}
