import type { FastifyReply } from "fastify";
import { escapeHtml } from "../../core/escape-html.ts";
import { assetPath } from "./assets.ts";
import { GUEST_COOKIE, SESSION_COOKIE } from "./authenticate.ts";
import { setCookies } from "./send-response.ts";

/** Text that is HTML already. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** For text that is HTML already and has no part of foreign origin that was not escaped. */
export const toHtml = (text: string): Html => new Html(text);

type Value = Html | string | number | null | undefined | false | Value[];

function render(value: Value): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  return Array.isArray(value) ? value.map(render).join("") : escapeHtml(String(value));
}

/** A template whose values are escaped, unless they are Html themselves. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(
    strings.reduce((text, part, at) => text + part + (at < values.length ? render(values[at]) : ""), ""),
  );

export interface HtmlPage {
  title: string;
  /** One or more `.card`; assets/stoa.css lists the classes. */
  main: Html;
  status?: number;
  /** Names of files below /assets. Imported modules come first, so that the browser loads all at once. */
  scripts?: string[];
  /** Allows a frame with a page of this origin. */
  frames?: boolean;
  /** For lists and emails, which need more than the column of forms. */
  wide?: boolean;
  /** Origins beside our own to which a form of this page may lead, redirects included: Chrome checks the whole chain. */
  formAction?: string[];
}

/** A page with one stylesheet, without inline scripts and styles, not framed and not cached. */
export function sendPage(reply: FastifyReply, page: HtmlPage) {
  setGuestCookie(reply);
  return reply
    .code(page.status ?? 200)
    .headers({ "content-security-policy": policyOf(page), "cache-control": "no-store" })
    .type("text/html; charset=utf-8")
    .send(document(page).text);
}

/** Gives a browser without a session the cookie of a guest. Returns the value of the cookie; empty for a session. */
export function setGuestCookie(reply: FastifyReply): string {
  const { cookies } = reply.request;
  const { guests } = reply.server;
  if (cookies[SESSION_COOKIE] !== undefined) return "";
  const given = cookies[GUEST_COOKIE] ?? "";
  if (guests.identify(given)) return given;
  const cookie = guests.cookie();
  setCookies(reply, [cookie]);
  return cookie.value;
}

const policyOf = ({ frames = false, formAction = [] }: HtmlPage) =>
  [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "script-src 'self'",
    "connect-src 'self'",
    `frame-src ${frames ? "'self'" : "'none'"}`,
    `form-action ${["'self'", ...formAction].join(" ")}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");

const document = ({ title, main, scripts = [], wide = false }: HtmlPage) => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Stoa</title>
<link rel="icon" type="image/svg+xml" href="${assetPath("stoa.svg")}">
<link rel="stylesheet" href="${assetPath("stoa.css")}">
${scripts.map((name) => html`<script type="module" src="${assetPath(name)}"></script>\n`)}</head>
<body>
<header class="top"><a class="mark" href="/">${LOGO}Stoa</a></header>
<main${wide && html` class="wide"`}>
${main}
</main>
</body>
</html>
`;

/** The mark stands before the name, which is why it has none of its own. */
export const LOGO: Html = new Html(
  '<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false"><path d="M2 2.8 22 8.3v2.3L2 7.2Z M2 9.3 6.6 9.92V20.68L2 21.6Z M8.9 10.23 12.3 10.69V19.54L8.9 20.22Z M14.3 10.96 16.8 11.3V18.64L14.3 19.14Z M18.6 11.54 20.4 11.78V17.92L18.6 18.28Z" fill="currentColor"/></svg>',
);
