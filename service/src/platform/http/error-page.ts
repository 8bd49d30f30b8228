import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiError } from "../../core/errors.ts";
import { wantsHtml } from "./accept.ts";
import { html, sendPage } from "./html.ts";
import { pathOf } from "./request-path.ts";

/** Paths for programs: the API, sign-in, OAuth without its pages, MCP, discovery, health and metrics. */
const FOR_PROGRAMS =
  /^\/(v1|api|oauth(?!\/interaction)|mcp|\.well-known|assets|images|healthz|readyz|metrics)(\/|$)/;
/** Targets of signed links below the API, which open in browsers. */
const SIGNED_PAGES =
  /^\/v1\/(purchases|account\/subscription\/payments)\/[^/]+\/(download|receipt|receipt\.pdf)$/;

export function wantsErrorPage(request: FastifyRequest): boolean {
  const path = pathOf(request);
  return wantsHtml(request) && (!FOR_PROGRAMS.test(path) || SIGNED_PAGES.test(path));
}

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
<p class="small">If you ask for help, quote this: <code>${request.id}</code></p>
</section>`,
  });
}

function wordsFor({ status, message }: ApiError): { title: string; text: string } {
  if (status === 404) {
    return {
      title: "This page does not exist",
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
