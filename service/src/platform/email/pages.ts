import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { validate as isUuid } from "uuid";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { wantsJson } from "../http/accept.ts";
import { html, sendPage } from "../http/html.ts";
import { requireTestPageAccess } from "../http/test-pages.ts";
import { findEmail, listEmails, type StoredEmail } from "./email-queue.ts";

/** An email can only open its links in another tab. */
const SANDBOX = "allow-popups allow-popups-to-escape-sandbox";
const EMAIL_POLICY = `default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox ${SANDBOX}`;

/** /dev/mail: the emails of a test environment without a mail server. They open every account, so other machines get 404. */
export function addEmailPages(app: FastifyInstance, ctx: Context): void {
  if (ctx.config.environment !== "test" || ctx.config.mail !== "dev") return;
  const onRequest = requireTestPageAccess(ctx);
  app.get("/dev/mail", { onRequest }, async (request, reply) => {
    const messages = await listEmails(ctx);
    return wantsJson(request) ? sendJson(reply, messages.map(toJson)) : sendList(reply, messages);
  });
  app.get("/dev/mail/:id", { onRequest }, async (request, reply) => {
    const message = await requestedEmail(ctx, request);
    return wantsJson(request) ? sendJson(reply, toJson(message)) : sendEmailPage(reply, message);
  });
  app.get("/dev/mail/:id/html", { onRequest }, async (request, reply) =>
    sendEmailHtml(reply, await requestedEmail(ctx, request)),
  );
}

async function requestedEmail(ctx: Context, request: FastifyRequest): Promise<StoredEmail> {
  const { id } = request.params as { id: string };
  const message = isUuid(id) ? await findEmail(ctx, id) : null;
  if (!message) throw new ApiError("NOT_FOUND");
  return message;
}

const toJson = ({ id, to, subject, text, html, createdAt }: StoredEmail) => ({
  id,
  to,
  subject,
  text,
  html,
  createdAt: createdAt.toISOString(),
});

const sendJson = (reply: FastifyReply, data: object) =>
  reply
    .headers({ "cache-control": "no-store", vary: "Accept" })
    .type("application/json; charset=utf-8")
    .send({ success: true, data });

const sendEmailHtml = (reply: FastifyReply, message: StoredEmail) =>
  reply
    .headers({
      "content-security-policy": EMAIL_POLICY,
      "x-frame-options": "SAMEORIGIN",
      "cache-control": "no-store",
    })
    .type("text/html; charset=utf-8")
    .send(message.html.replace("<head>", '<head>\n<base target="_blank">'));

const renderTime = ({ createdAt }: StoredEmail) =>
  html`<time datetime="${createdAt.toISOString()}">${createdAt.toISOString().slice(0, 19).replace("T", " ")} UTC</time>`;

const sendList = (reply: FastifyReply, messages: StoredEmail[]) =>
  sendPage(reply.header("vary", "Accept"), {
    title: "Mailbox",
    wide: true,
    scripts: ["live.js"],
    main: html`<div class="card">
<h1>Mailbox</h1>
<p class="lead">Emails that a mail server would have sent, newest first. They are kept for a week and shown only on this machine or at the address that the start prints.</p>
<ul class="entries dated" data-live aria-live="polite">
${messages.map(
  (message) =>
    html`<li><div><a href="/dev/mail/${message.id}">${message.subject}</a><span>${message.to}</span></div>${renderTime(message)}</li>\n`,
)}
${messages.length === 0 && html`<li>No email yet.</li>`}
</ul>
</div>`,
  });

const sendEmailPage = (reply: FastifyReply, message: StoredEmail) =>
  sendPage(reply.header("vary", "Accept"), {
    title: message.subject,
    frames: true,
    wide: true,
    main: html`<div class="card">
<p><a href="/dev/mail">Mailbox</a></p>
<h1>${message.subject}</h1>
<dl class="facts"><dt>To</dt><dd>${message.to}</dd><dt>Written</dt><dd>${renderTime(message)}</dd></dl>
<iframe class="frame" title="The email as HTML" sandbox="${SANDBOX}" src="/dev/mail/${message.id}/html"></iframe>
</div>
<div class="card">
<h2>As text</h2>
<pre class="plain" tabindex="0">${message.text}</pre>
</div>`,
  });
