import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Endpoint, type ErrorCode, errorCatalogue } from "@stoa/contract";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { digestOf, isSameDigest } from "../digest.ts";
import { ApiError } from "../errors.ts";
import type { Metrics } from "./metrics.ts";
import { openApiDocument } from "./openapi.ts";
import { isFromThisMachine } from "./own-machine.ts";

export interface Pages {
  endpoints: Endpoint[];
  origin(): string;
  /** Of the headers of webhooks. */
  headerPrefix: string;
  metrics: Metrics;
  metricsToken: string | null;
  /** What keeps the service from answering, in words; empty when it is ready. */
  whyNotReady(): Promise<string[]>;
  /** What does not work as it should, though the service answers. */
  warnings(): string[];
}

export function addPages(app: FastifyInstance, pages: Pages): void {
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const problems = await pages.whyNotReady();
    return reply.code(problems.length === 0 ? 200 : 503).send({
      status: problems.length === 0 ? "ready" : "not ready",
      problems,
      warnings: pages.warnings(),
    });
  });
  app.get("/metrics", async (request, reply) => {
    mustBeOperator(request, pages);
    return reply.type(pages.metrics.contentType).send(await pages.metrics.text());
  });
  let document: string | undefined;
  app.get("/v1/openapi.json", async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(pages.endpoints, pages.origin(), pages.headerPrefix));
    return reply.type("application/json; charset=utf-8").send(document);
  });
  app.get("/", async (_request, reply) => reply.redirect("/docs"));
  addReference(app);
}

/** Figures are for the operator: asked on the machine itself, or with the token. */
function mustBeOperator(request: FastifyRequest, { metricsToken, origin }: Pages): void {
  const allowed = metricsToken
    ? isSameDigest(digestOf(request.headers.authorization ?? ""), digestOf(`Bearer ${metricsToken}`))
    : isFromThisMachine(request, origin());
  if (!allowed) throw new ApiError("NOT_FOUND");
}

const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const page = (title: string, body: string, styles: string[]) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Stoa</title>
<link rel="icon" href="data:,">
${styles.map((href) => `<link rel="stylesheet" href="${href}">`).join("\n")}
</head>
<body>
<header class="top"><strong>Stoa</strong><nav><a href="/docs">API reference</a><a href="/docs/errors">Errors</a><a href="/v1/openapi.json">openapi.json</a><a href="/auth/signed-in">Your account</a></nav></header>
${body}
</body>
</html>
`;

const STYLE = new URL("./docs.css", import.meta.url);
const SCRIPT = new URL("./docs.js", import.meta.url);

/** The reference and its files, all from this origin: the browser asks nobody else. */
function addReference(app: FastifyInstance): void {
  const dist = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  const html = (reply: FastifyReply, text: string) =>
    reply.header("content-security-policy", REFERENCE_POLICY).type("text/html; charset=utf-8").send(text);
  const reference = page(
    "API reference",
    '<div id="reference"></div>\n<script src="/docs/swagger-ui.js"></script>\n<script src="/docs/docs.js"></script>',
    ["/docs/swagger-ui.css", "/docs/docs.css"],
  );
  app.get("/docs", async (_request, reply) => html(reply, reference));
  app.get("/docs/errors", async (_request, reply) =>
    html(reply, page("Errors", errorTable(), ["/docs/docs.css"])),
  );
  addFile(app, "/docs/swagger-ui.js", join(dist, "swagger-ui-bundle.js"), "text/javascript");
  addFile(app, "/docs/swagger-ui.css", join(dist, "swagger-ui.css"), "text/css");
  addFile(app, "/docs/docs.js", SCRIPT, "text/javascript");
  addFile(app, "/docs/docs.css", STYLE, "text/css");
}

/** Read when it is first asked for, and kept. */
function addFile(app: FastifyInstance, path: string, file: string | URL, type: string): void {
  let kept: { bytes: Buffer; etag: string } | undefined;
  app.get(path, async (request, reply) => {
    kept ??= await readTagged(file);
    reply.headers({ etag: kept.etag, "cache-control": "no-cache" });
    if (request.headers["if-none-match"] === kept.etag) return reply.code(304).send();
    return reply.type(`${type}; charset=utf-8`).send(kept.bytes);
  });
}

async function readTagged(file: string | URL) {
  const bytes = await readFile(file);
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"` };
}

function errorTable(): string {
  const rows = (Object.keys(errorCatalogue) as ErrorCode[]).map((code) => {
    const { status, message } = errorCatalogue[code];
    return `<tr id="${code}"><td>${status}</td><td><code>${code}</code></td><td>${message}</td></tr>`;
  });
  return `<main><h1>Errors</h1><p>Every error has the same shape: <code>error.code</code> is for programs, <code>error.message</code> for people, and <code>error.details</code> names the field where there is one.</p>
<table><thead><tr><th>HTTP</th><th>Code</th><th>Meaning</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></main>`;
}
