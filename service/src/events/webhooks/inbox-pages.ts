import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { wantsJson } from "../../platform/http/accept.ts";
import { type Html, html, sendPage } from "../../platform/http/html.ts";
import { isLoopbackRequest } from "../../platform/http/local-request.ts";
import { requireSameOrigin } from "../../platform/http/same-origin.ts";
import { requireTestPageAccess } from "../../platform/http/test-pages.ts";
import { listSecretsByUrlSuffix } from "./inbox-queries.ts";
import { Inboxes, type InboxMessage } from "./inboxes.ts";
import { openSecrets } from "./secrets.ts";
import { type VerificationResult, verifySignature } from "./verify-signature.ts";

const MAX_BODY_BYTES = 256 * 1024;
const NAME = /^[\w-]{1,64}$/;
const INBOX_PATH = "/dev/hooks/";

/**
 * /dev/hooks receives webhooks of a test environment without a server. Only requests from this machine, or with the
 * token that the start prints, may read them.
 */
export function addInboxPages(app: FastifyInstance, ctx: Context): void {
  if (ctx.config.environment !== "test") return;
  const inboxes = new Inboxes();
  const requireOwnOrigin = async (request: FastifyRequest) =>
    requireSameOrigin(request, ctx.links.origin(), "no objection");
  const mayRead = requireTestPageAccess(ctx);
  const onRequest = [mayRead, requireOwnOrigin];
  const options = { onRequest, bodyLimit: MAX_BODY_BYTES };
  // Our own deliveries use the public host name and have no token.
  const mayPost = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isLoopbackRequest(request, ctx.links.origin())) await mayRead(request, reply);
  };
  const postOptions = { ...options, onRequest: [mayPost, requireOwnOrigin] };

  app.get("/dev/hooks", { onRequest }, async (_request, reply) => sendInboxListPage(reply, inboxes));
  app.post(`${INBOX_PATH}:name`, postOptions, async (request) => {
    const name = readInboxName(request);
    inboxes.put(name, await readMessage(ctx, name, request));
    return { received: true };
  });
  app.get(`${INBOX_PATH}:name`, { onRequest }, async (request, reply) => {
    const name = readInboxName(request);
    const messages = inboxes.list(name);
    if (wantsJson(request)) return sendJson(reply, messages.map(toJson));
    return sendInboxPage(reply, ctx.links.origin() + INBOX_PATH + name, name, messages);
  });
  app.get(`${INBOX_PATH}:name/:id`, { onRequest }, async (request, reply) => {
    const message = mustFindMessage(inboxes, request);
    if (wantsJson(request)) return sendJson(reply, toJson(message));
    return sendMessagePage(reply, readInboxName(request), message, null);
  });
  app.post(`${INBOX_PATH}:name/:id`, options, async (request, reply) => {
    const message = mustFindMessage(inboxes, request);
    const result = verifySignature(ctx.config.webhookHeaderPrefix, message, [readSecret(request)]);
    return sendMessagePage(reply, readInboxName(request), message, result);
  });
}

function readInboxName(request: FastifyRequest): string {
  const { name } = request.params as { name: string };
  if (!NAME.test(name)) throw new ApiError("NOT_FOUND");
  return name;
}

function mustFindMessage(inboxes: Inboxes, request: FastifyRequest): InboxMessage {
  const message = inboxes.find(readInboxName(request), (request.params as { id: string }).id);
  if (!message) throw new ApiError("NOT_FOUND");
  return message;
}

const readBody = ({ body }: FastifyRequest): string => (Buffer.isBuffer(body) ? body.toString("utf8") : "");
const readSecret = (request: FastifyRequest): string =>
  (new URLSearchParams(readBody(request)).get("secret") ?? "").trim();

async function readMessage(ctx: Context, name: string, request: FastifyRequest): Promise<InboxMessage> {
  // A browser's cookie would give access to an account.
  const { cookie: _, ...headers } = request.headers;
  const texts = Object.entries(headers).map(([header, value]) => [header, String(value)]);
  const signed = { headers: Object.fromEntries(texts), body: readBody(request) };
  const signature = await verifyWithStoredSecrets(ctx, name, signed);
  return { id: ctx.newId(), ...signed, receivedAt: ctx.now(), signature };
}

/** Verifies with the active secrets of the endpoints whose URL is this inbox. */
async function verifyWithStoredSecrets(
  ctx: Context,
  name: string,
  signed: Pick<InboxMessage, "headers" | "body">,
): Promise<InboxMessage["signature"]> {
  const found = await listSecretsByUrlSuffix(ctx.db, INBOX_PATH + name, ctx.now());
  const secrets = openSecrets(ctx, found);
  const result = verifySignature(ctx.config.webhookHeaderPrefix, signed, secrets);
  const areAllOpened = found.length > 0 && secrets.length === found.length;
  return result === "wrong" && !areAllOpened ? "unknown" : result;
}

const toJson = ({ id, headers, body, receivedAt, signature }: InboxMessage) => ({
  id,
  headers,
  body,
  receivedAt: receivedAt.toISOString(),
  signature,
});

const sendJson = (reply: FastifyReply, data: object) =>
  reply
    .headers({ "cache-control": "no-store", vary: "Accept" })
    .type("application/json; charset=utf-8")
    .send({ success: true, data });

const statusLabels: Record<InboxMessage["signature"], string> = {
  right: "signature right",
  wrong: "signature wrong",
  missing: "no signature",
  unknown: "signature not checked",
};

const statusTexts: Record<InboxMessage["signature"], Html> = {
  right: html`<p class="notice good"><strong>The signature is valid.</strong> It was made with the secret of an endpoint of this inbox.</p>`,
  wrong: html`<p class="notice bad"><strong>The signature is wrong.</strong> It was made with the secret of no endpoint of this inbox.</p>`,
  missing: html`<p class="notice warning"><strong>There is no signature.</strong> Anybody may have sent this.</p>`,
  unknown: html`<p class="notice"><strong>The signature was not checked.</strong> No endpoint led to this inbox, or a secret of it cannot be opened; give the secret below.</p>`,
};

const checkResultTexts: Record<VerificationResult, Html> = {
  right: html`<p class="notice good" role="status"><strong>This secret signed it.</strong></p>`,
  wrong: html`<p class="notice bad" role="status"><strong>The signature was made with another secret.</strong></p>`,
  missing: html`<p class="notice warning" role="status"><strong>There is no signature to check.</strong></p>`,
};

const renderTime = ({ receivedAt }: InboxMessage) =>
  html`<time datetime="${receivedAt.toISOString()}">${receivedAt.toISOString().slice(0, 19).replace("T", " ")} UTC</time>`;

function readEventType({ body }: InboxMessage): string {
  try {
    const { type } = JSON.parse(body) as { type?: unknown };
    return typeof type === "string" && type !== "" ? type : "A post";
  } catch {
    return "A post";
  }
}

/** A long type wraps after its dots on a small screen. */
const renderHeading = (message: InboxMessage): Html =>
  html`<h1>${readEventType(message)
    .split(/(?<=\.)/)
    .map((part) => html`${part}<wbr>`)}</h1>`;

const sendInboxListPage = (reply: FastifyReply, inboxes: Inboxes) =>
  sendPage(reply, {
    title: "Webhook inboxes",
    wide: true,
    main: html`<div class="card">
<h1>Webhook inboxes</h1>
<p class="lead">Any address below /dev/hooks/ takes what is posted to it from this machine, and shows it: an endpoint to try webhooks with.
What came in is kept in memory until the service ends.</p>
<div class="actions"><a class="button primary" href="${INBOX_PATH}${randomBytes(6).toString("base64url")}">A new inbox</a></div>
<ul class="entries">
${inboxes.all().map(({ name, count }) => html`<li><div><a href="${INBOX_PATH}${name}">${name}</a><span>${count} messages</span></div></li>\n`)}
${inboxes.all().length === 0 && html`<li>Nothing has come in yet.</li>`}
</ul>
</div>`,
  });

const sendInboxPage = (reply: FastifyReply, url: string, name: string, messages: readonly InboxMessage[]) =>
  sendPage(reply.header("vary", "Accept"), {
    title: `Inbox ${name}`,
    wide: true,
    scripts: ["live.js"],
    main: html`<div class="card">
<p><a href="/dev/hooks">Webhook inboxes</a></p>
<h1>Inbox ${name}</h1>
<p class="lead">What was posted here, newest first. Make this the address of a webhook endpoint, and send it a test:</p>
<code class="secret">${url}</code>
<ul class="entries dated" data-live aria-live="polite">
${messages.map(
  (message) =>
    html`<li><div><a href="${INBOX_PATH}${name}/${message.id}">${readEventType(message)}</a><span>${statusLabels[message.signature]}</span></div>${renderTime(message)}</li>\n`,
)}
${messages.length === 0 && html`<li>Nothing has come in yet.</li>`}
</ul>
</div>`,
  });

const sendMessagePage = (
  reply: FastifyReply,
  name: string,
  message: InboxMessage,
  result: VerificationResult | null,
) =>
  sendPage(reply.header("vary", "Accept"), {
    title: readEventType(message),
    wide: true,
    main: html`<div class="card">
<p><a href="${INBOX_PATH}${name}">Inbox ${name}</a></p>
${renderHeading(message)}
${statusTexts[message.signature]}
<dl class="facts"><dt>Received</dt><dd>${renderTime(message)}</dd>
${Object.entries(message.headers).map(([header, value]) => html`<dt>${header}</dt><dd>${value}</dd>\n`)}</dl>
</div>
<div class="card">
<h2>Body</h2>
<pre class="plain" tabindex="0">${message.body}</pre>
</div>
<div class="card">
<h2>Check the signature</h2>
<form method="post" action="${INBOX_PATH}${name}/${message.id}">
${result && checkResultTexts[result]}
<div class="field"><label for="secret">Secret</label>
<p class="hint" id="secret-hint">As shown when the endpoint was created: whsec_ and what follows.</p>
<input id="secret" name="secret" autocomplete="off" spellcheck="false" required aria-describedby="secret-hint"></div>
<button class="button">Check</button>
</form>
</div>`,
  });
