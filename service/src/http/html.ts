import type { FastifyReply } from "fastify";

/** Text that is HTML already. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | null | undefined | false | Value[];

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);

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

export interface Page {
  title: string;
  main: Html;
  status?: number;
  /** Names of files below /assets, loaded as modules. */
  scripts?: string[];
  /** Whether it shows another page of ours in a frame. */
  frames?: boolean;
  /** For lists and letters, which a column for forms would crush. */
  wide?: boolean;
  /** Origins beside our own to which a form of this page may lead, redirects included: Chrome checks the whole chain. */
  formAction?: string[];
}

/** A whole page: one stylesheet, no inline script or style, no framing. */
export function sendPage(
  reply: FastifyReply,
  { title, main, status = 200, scripts = [], frames = false, wide = false, formAction = [] }: Page,
) {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "script-src 'self'",
    "connect-src 'self'",
    `frame-src ${frames ? "'self'" : "'none'"}`,
    `form-action ${["'self'", ...formAction].join(" ")}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – Stoa</title>
<link rel="stylesheet" href="/assets/stoa.css">
${scripts.map((name) => html`<script type="module" src="/assets/${name}"></script>`)}
</head>
<body>
<main${wide && html` class="wide"`}>${main}</main>
</body>
</html>`;
  return reply
    .code(status)
    .headers({ "content-security-policy": policy, "cache-control": "no-store" })
    .type("text/html; charset=utf-8")
    .send(page.text);
}
