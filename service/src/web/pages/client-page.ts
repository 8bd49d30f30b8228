import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { negotiate } from "@fastify/accept-negotiator";
import { MEMBER_REQUESTS } from "@stoa/web/first-requests";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { type Html, html, LOGO, toHtml } from "../../platform/http/html.ts";
import type { PageFiles } from "../builds/web-build.ts";
import type { MissingBuild } from "../builds/web-builds.ts";
import {
  type FirstResponse,
  type FirstResponses,
  fetchFirstResponses,
  findRefusal,
} from "./first-responses.ts";

/** What a page shows before, or without, the scripts of the client. */
export interface ClientPage {
  status?: number;
  title: string;
  description?: string;
  /** Its address is a secret: no cache may keep it, and no search engine may list it. */
  isSecret?: boolean;
  /** More elements of the head: canonical address, Open Graph, JSON-LD. */
  head?: Html;
  /** The content in plain HTML. */
  main?: Html;
}

interface ClientPageOptions {
  /** Requests whose responses the page carries. */
  requests?: string[];
  /** More of them, for members. */
  memberRequests?: string[];
  /** The modules of the page in the client, such as `src/pages/market/home.tsx`, so that they load with the first scripts. */
  modules?: string[];
  describe(responses: FirstResponses["responses"], isSignedIn: boolean): ClientPage | Redirect;
}

interface Redirect {
  redirect: string;
  isPermanent?: boolean;
}

const gzipText = promisify<string, Buffer>(gzip);

const acceptsGzip = ({ headers }: FastifyRequest): boolean =>
  typeof headers["accept-encoding"] === "string" &&
  negotiate(headers["accept-encoding"], ["gzip"]) === "gzip";

/** Sends a page of the web client: its content in HTML, the responses that its first view needs, and its scripts. */
export async function sendClientPage(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { requests = [], memberRequests = [], modules = [], describe }: ClientPageOptions,
): Promise<FastifyReply> {
  const first = await fetchFirstResponses(ctx, request, reply, requests, [
    ...MEMBER_REQUESTS,
    ...memberRequests,
  ]);
  const refusal = findRefusal(first, requests);
  if (refusal?.retryAfter !== undefined) reply.header("retry-after", refusal.retryAfter);
  const page = refusal ? refusedPage(refusal) : describe(first.responses, first.isSignedIn);
  // A title or handle may change back: a browser that kept both redirects would go in circles.
  reply.header("cache-control", "private, no-cache");
  if ("redirect" in page) return reply.redirect(page.redirect, page.isPermanent ? 301 : 302);
  const nonce = randomBytes(16).toString("base64url");
  const { captcha } = ctx.integrations;
  const files = ctx.webBuilds.current?.filesOf(modules) ?? ctx.webBuilds.missing;
  const { text } = documentOf(page, nonce, files, { environment: ctx.config.environment, ...first });
  reply
    .code(page.status ?? 200)
    .headers({
      "content-security-policy": policyOf(nonce, first.isSignedIn ? [] : captcha.widgetOrigins),
      // After the sign-out, the browser's way back must show no page of the account.
      ...((page.isSecret || first.isSignedIn) && { "cache-control": "no-store" }),
      ...(page.isSecret && { "x-robots-tag": "noindex" }),
    })
    .type("text/html; charset=utf-8");
  // The length of a compressed page could tell what stands in it beside a text of the address: https://www.breachattack.com
  if (first.isSignedIn || page.isSecret || !acceptsGzip(request)) return reply.send(text);
  return reply.headers({ "content-encoding": "gzip", vary: "accept-encoding" }).send(await gzipText(text));
}

/** The status tells search engines to come again. The client shows the error in its place. */
const refusedPage = ({ status, body }: FirstResponse): ClientPage => ({
  status,
  title: "This page did not load",
  main: html`<main class="page" id="content"><h1 class="title">This page did not load</h1><p>${body.error.message}</p></main>`,
});

/**
 * Mantine makes style elements, which need the nonce. Images of products may be sent by the file storage. `widgets`: origins of a captcha,
 * which only guests need. Any page may lead to a product without another load.
 */
const policyOf = (nonce: string, widgets: readonly string[]): string =>
  [
    "default-src 'none'",
    ["script-src 'self'", `'nonce-${nonce}'`, ...widgets].join(" "),
    ["style-src 'self'", `'nonce-${nonce}'`, ...widgets].join(" "),
    "img-src 'self' data: blob:",
    "font-src 'self'",
    ["connect-src 'self'", ...widgets].join(" "),
    ...(widgets.length > 0 ? [`frame-src ${widgets.join(" ")}`] : []),
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");

/** Before the first paint, so that a chosen scheme does not flash. */
const COLOR_SCHEME = toHtml(
  'try{const s=localStorage.getItem("mantine-color-scheme-value");if(s==="light"||s==="dark")document.documentElement.dataset.mantineColorScheme=s}catch{}',
);

function documentOf(
  { title, description, head, main }: ClientPage,
  nonce: string,
  files: PageFiles | MissingBuild,
  data: object,
): Html {
  const hasContent = main !== undefined;
  const build = "script" in files ? files : null;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Stoa</title>
${description !== undefined && html`<meta name="description" content="${description}">`}
<link rel="icon" type="image/svg+xml" href="/assets/stoa.svg">
<script nonce="${nonce}">${COLOR_SCHEME}</script>
${"script" in files ? stylesOf(files, hasContent) : html`<meta http-equiv="refresh" content="${files.reloadSeconds}">`}
${build && !hasContent && scriptsOf(build, nonce)}
${head}
</head>
<body>
<div id="root">
<header class="top"><a class="brand" href="/">${LOGO}Stoa</a></header>
${"hasFailed" in files && missingBuild(files)}
${main ?? html`<main class="page" id="content"></main>`}
</div>
<script type="application/json" id="initial-data">${scriptData(data)}</script>
<noscript><p class="strip">This page works with scripts. The <a href="/docs">API</a> does without.</p></noscript>
${build && hasContent && scriptsAfterPaint(build, nonce)}
</body>
</html>
`;
}

const missingBuild = ({ hasFailed }: MissingBuild): Html =>
  hasFailed
    ? html`<div class="strip warning" role="alert"><p><strong>The web client is not built.</strong> What you see is this page without it. The API works.</p>
<p>If you operate this marketplace: the log of the service has the reason. Run <code>npm run build</code> in its folder; the service serves the build at once, without a restart.</p></div>`
    : html`<p class="strip warning" role="status">The web client is being built. This page reloads by itself.</p>`;

const stylesOf = ({ styles, font }: PageFiles, hasContent: boolean): Html =>
  html`${styles.map((name) => html`<link rel="stylesheet" href="/client/${name}">\n`)}${
    font !== undefined &&
    html`<link rel="preload" as="font" type="font/woff2" href="/client/${font}"${!hasContent && html` fetchpriority="low"`} crossorigin>\n`
  }`;

const scriptsOf = ({ script, modules }: PageFiles, nonce: string): Html =>
  html`${modules.map((name) => html`<link rel="modulepreload" href="/client/${name}">\n`)}<script type="module" src="/client/${script}" nonce="${nonce}"></script>`;

/** A tab in the background paints nothing, and so might a browser that does not tell of it. */
const LOAD_SCRIPTS = toHtml(`const load = () => {
  painted.disconnect();
  clearTimeout(timer);
  document.head.append(document.getElementById("scripts").content);
};
const painted = new PerformanceObserver(load);
painted.observe({ type: "paint", buffered: true });
const timer = setTimeout(load, document.hidden ? 0 : 2000);`);

/** On a slow line, the scripts of a page that has its content come after it is painted in its font. They would share the line with both. */
const scriptsAfterPaint = (files: PageFiles, nonce: string): Html =>
  html`<template id="scripts">${scriptsOf(files, nonce)}</template>
<script type="module" nonce="${nonce}">${LOAD_SCRIPTS}</script>`;

/** JSON inside a script element: `<` would let a text end the element. */
export const scriptData = (data: object): Html => toHtml(JSON.stringify(data).replaceAll("<", "\\u003c"));
