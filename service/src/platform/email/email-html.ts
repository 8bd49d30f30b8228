import { html } from "../http/html.ts";
import type { EmailContent } from "./render-email.ts";

/** Inline, because email clients drop stylesheets; the classes are for dark colors only. */
const STYLE = {
  page: "margin:0;padding:24px 12px;background:#f5f4ef;color:#17161b;font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;-webkit-text-size-adjust:100%",
  preview: "display:none;max-height:0;overflow:hidden;mso-hide:all",
  sheet:
    "max-width:520px;margin:0 auto;padding:28px;background:#ffffff;border:1px solid #e0ddd5;border-radius:10px",
  name: "margin:0 0 20px;font-size:14px;font-weight:600;letter-spacing:0.02em;color:#55525d",
  title: "margin:0 0 16px;font-size:22px;line-height:1.3;font-weight:650;color:#17161b",
  paragraph: "margin:0 0 16px;overflow-wrap:anywhere",
  action: "margin:24px 0",
  button:
    "display:inline-block;padding:12px 22px;border-radius:8px;background:#2637c8;color:#ffffff;font-weight:600;text-decoration:none",
  small: "margin:0 0 12px;font-size:13px;line-height:1.5;color:#55525d;overflow-wrap:anywhere",
  link: "color:#2637c8",
  line: "margin:24px 0 16px;border:0;border-top:1px solid #e0ddd5",
};

/** Only for clients with dark mode; others show the light colors above. */
const DARK = `:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
.page{background:#111115!important;color:#efedf3!important}
.sheet{background:#19191f!important;border-color:#2e2e37!important}
.title{color:#efedf3!important}
.name,.small{color:#aba8b6!important}
.button{background:#4657e6!important;color:#ffffff!important}
.link{color:#a6b3ff!important}
.line{border-color:#2e2e37!important}
}`;

/** No tables and no images, so that it also works with blocked images, screen readers and phones. */
export function renderEmailHtml({ subject, paragraphs, action, footnotes }: EmailContent): string {
  return html`<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${subject}</title>
<style>${DARK}</style>
</head>
<body class="page" style="${STYLE.page}">
<div style="${STYLE.preview}">${paragraphs[0]}</div>
<div class="sheet" style="${STYLE.sheet}" lang="en">
<p class="name" style="${STYLE.name}">Stoa</p>
<h1 class="title" style="${STYLE.title}">${subject}</h1>
${paragraphs.map((text) => html`<p style="${STYLE.paragraph}">${text}</p>\n`)}
${action && button(action)}
${footnotes.length > 0 && html`<hr class="line" style="${STYLE.line}">`}
${footnotes.map((text) => html`<p class="small" style="${STYLE.small}">${text}</p>\n`)}
</div>
</body>
</html>
`.text;
}

const button = ({ label, url }: { label: string; url: string }) =>
  html`<p style="${STYLE.action}"><a class="button" style="${STYLE.button}" href="${url}">${label}</a></p>
<p class="small" style="${STYLE.small}">If the button does nothing, open this address:<br><a class="link" style="${STYLE.link}" href="${url}">${url}</a></p>`;
