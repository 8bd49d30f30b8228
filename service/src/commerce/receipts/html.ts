import { createHash } from "node:crypto";
import { escapeHtml } from "../../core/escape-html.ts";
import type { ReceiptText } from "./receipt.ts";

const style = `
:root { color-scheme: light dark; --ink: #17161b; --soft: #55525d; --paper: #fff; --ground: #f5f4ef; --line: #e0ddd5; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #efedf3; --soft: #aba8b6; --paper: #19191f; --ground: #111115; --line: #2e2e37; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--ground); color: var(--ink); font: 1rem/1.5 Inter, system-ui, sans-serif; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
main { max-width: 42rem; margin: 1rem auto; padding: clamp(1.25rem, 5vw, 3rem); background: var(--paper); border: 1px solid var(--line); border-radius: .75rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0 1rem; margin-bottom: 2rem; }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2; }
header p { margin: 0; font-weight: 600; }
dl { margin: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: 1rem 1.5rem; }
dt, .soft { color: var(--soft); font-size: .875rem; }
dd { margin: 0; }
.facts dd { font-size: .9375rem; }
table { width: 100%; margin: 2rem 0 1rem; border-collapse: collapse; }
caption { position: absolute; clip-path: inset(50%); }
th, td { padding: .75rem 0; border-bottom: 1px solid var(--line); text-align: start; vertical-align: top; font-weight: 400; }
thead th { padding-top: 0; color: var(--soft); font-size: .875rem; }
th:last-child, td:last-child { padding-inline-start: 1rem; text-align: end; white-space: nowrap; }
th .soft { display: block; }
.sums { width: 100%; max-width: 25rem; margin-inline-start: auto; }
.sums div { display: flex; justify-content: space-between; gap: 1rem; padding: .25rem 0; }
.sums dt { color: inherit; font-size: inherit; }
.sums dd { text-align: end; white-space: nowrap; }
.sums .main { font-size: 1.25rem; font-weight: 600; }
footer { margin-top: 2.5rem; }
@media print {
  @page { margin: 18mm; }
  :root { color-scheme: light; }
  body { padding: 0; background: none; }
  main { max-width: none; margin: 0; padding: 0; border: 0; border-radius: 0; }
}
`;

/** Allows only the page's own style. */
export const receiptPageCsp = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** The URL is a signed link that needs no sign-in: it must not leak through Referer or search engines. */
export function renderReceiptPage(text: ReceiptText): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>${escapeHtml(`${text.title} – ${text.service.name}`)}</title>
<style>${style}</style>
</head>
<body>
<main>
<header>
<h1>Receipt</h1>
<p>${escapeHtml(text.service.name)}</p>
</header>
<dl class="facts">
${text.facts.map(fact).join("\n")}
${text.parties.map(party).join("\n")}
</dl>
<table>
<caption>What was bought</caption>
<thead><tr><th scope="col">Product</th><th scope="col">Amount</th></tr></thead>
<tbody>
${text.lines.map(line).join("\n")}
</tbody>
</table>
<dl class="sums">
${text.sums.map(sum).join("\n")}
</dl>
<footer class="soft">${escapeHtml(`${text.service.name} · ${text.service.origin}`)}</footer>
</main>
</body>
</html>
`;
}

function fact({ label, value }: ReceiptText["facts"][number]): string {
  return `<div><dt>${escapeHtml(label)}</dt><dd>${escapeHtml(value)}</dd></div>`;
}

function party({ role, name, email }: ReceiptText["parties"][number]): string {
  const second = email === undefined ? "" : `<dd>${escapeHtml(email)}</dd>`;
  return `<div><dt>${escapeHtml(role)}</dt><dd><bdi>${escapeHtml(name)}</bdi></dd>${second}</div>`;
}

function line({ title, detail, amount }: ReceiptText["lines"][number]): string {
  const product = `<bdi>${escapeHtml(title)}</bdi> <span class="soft">${escapeHtml(detail)}</span>`;
  return `<tr><th scope="row">${product}</th><td>${escapeHtml(amount)}</td></tr>`;
}

function sum({ label, amount, isMain }: ReceiptText["sums"][number]): string {
  return `<div${isMain ? ' class="main"' : ""}><dt>${escapeHtml(label)}</dt><dd>${escapeHtml(amount)}</dd></div>`;
}
