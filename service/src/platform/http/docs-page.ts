import { LOGO } from "./html.ts";
import { StaticContent } from "./static-content.ts";

/** Allows scripts and styles of this origin, and no inline ones. */
export const DOCS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const document = (title: string, body: string, styles: string[]) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Stoa</title>
<link rel="icon" type="image/svg+xml" href="/assets/stoa.svg">
${styles.map((href) => `<link rel="stylesheet" href="${href}">`).join("\n")}
</head>
<body>
<header class="top"><a class="brand" href="/">${LOGO.text}Stoa</a><nav aria-label="Documentation"><a href="/docs">API reference</a><a href="/docs/guides">Guides</a><a href="/docs/errors">Errors</a><a href="/v1/openapi.json">openapi.json</a><a href="/settings/api">Your API keys</a></nav></header>
${body}
</body>
</html>
`;

export const docsPage = (title: string, body: string, styles = ["/docs/docs.css"]): StaticContent =>
  new StaticContent(document(title, body, styles), "text/html; charset=utf-8");
