import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliDecompress } from "node:zlib";
import { type Endpoint, errorCatalogue, errorCodes, errorRemedies, permissions } from "@stoa/contract";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { digestOf, isSameDigest } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { escapeHtml } from "../../core/escape-html.ts";
import { DOCS_POLICY, docsPage } from "./docs-page.ts";
import { addGuides } from "./guides.ts";
import { isLocalRequest } from "./local-request.ts";
import { openApiDocument } from "./openapi.ts";
import type { PrometheusMetrics } from "./prometheus.ts";
import { StaticContent, sendStatic } from "./static-content.ts";

export interface SystemPages {
  endpoints: Endpoint[];
  origin(): string;
  /** The prefix of our own headers of webhooks. */
  headerPrefix: string;
  /** Whether API keys are of the test environment. */
  hasTestKeys: boolean;
  metrics: PrometheusMetrics;
  metricsToken: string | null;
  findReadiness(): Promise<Readiness>;
}

export interface Readiness {
  /** Empty: the service is ready. */
  problems: string[];
  /** Problems that do not stop the service. */
  warnings: string[];
}

export function addSystemPages(app: FastifyInstance, pages: SystemPages): void {
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const { problems, warnings } = await pages.findReadiness();
    return reply.code(problems.length === 0 ? 200 : 503).send({
      status: problems.length === 0 ? "ready" : "not ready",
      problems,
      warnings,
    });
  });
  app.get("/metrics", async (request, reply) => {
    mustBeOperator(request, pages);
    return reply.type(pages.metrics.contentType).send(await pages.metrics.text());
  });
  let document: StaticContent | undefined;
  app.get("/v1/openapi.json", async (request, reply) => {
    document ??= new StaticContent(
      JSON.stringify(openApiDocument(pages.endpoints, pages.origin(), pages.headerPrefix)),
      "application/json; charset=utf-8",
    );
    return sendStatic(request, reply, document);
  });
  addReference(app, pages.hasTestKeys);
  addGuides(app);
}

/** Metrics need a local request or the token. */
function mustBeOperator(request: FastifyRequest, { metricsToken, origin }: SystemPages): void {
  const allowed = metricsToken
    ? isSameDigest(digestOf(request.headers.authorization ?? ""), digestOf(`Bearer ${metricsToken}`))
    : isLocalRequest(request, origin());
  if (!allowed) throw new ApiError("NOT_FOUND");
}

const STYLE = new URL("./docs.css", import.meta.url);
const SCRIPT = new URL("./docs.js", import.meta.url);
/** Written by `npm run generate`. */
const SWAGGER_UI_STYLE = new URL("./swagger-ui/swagger-ui.css.br", import.meta.url);
const SWAGGER_UI_SCRIPT = new URL("./swagger-ui/swagger-ui-bundle.js.br", import.meta.url);

/** docs.js fills in a key of the account that is signed in. */
const TEST_KEY = `<p class="test-key" id="test-key" data-permissions="${permissions.join(" ")}"><button type="button">Fill in a test key for one hour</button> <output></output></p>`;

const JAVASCRIPT = "text/javascript; charset=utf-8";
const CSS = "text/css; charset=utf-8";

/** The reference loads nothing from other origins. */
function addReference(app: FastifyInstance, hasTestKeys: boolean): void {
  const reference = docsPage(
    "API reference",
    `${hasTestKeys ? TEST_KEY : ""}<div id="reference"></div>\n<script src="/docs/swagger-ui.js"></script>\n<script src="/docs/docs.js"></script>`,
    ["/docs/swagger-ui.css", "/docs/docs.css"],
  );
  addDocsPage(app, "/docs", reference);
  addDocsPage(app, "/docs/errors", docsPage("Errors", errorTable()));
  addFile(app, "/docs/swagger-ui.js", () => readCompressed(SWAGGER_UI_SCRIPT, JAVASCRIPT));
  addFile(app, "/docs/swagger-ui.css", () => readCompressed(SWAGGER_UI_STYLE, CSS));
  addFile(app, "/docs/docs.js", () => readPlain(SCRIPT, JAVASCRIPT));
  addFile(app, "/docs/docs.css", () => readPlain(STYLE, CSS));
}

const addDocsPage = (app: FastifyInstance, path: string, page: StaticContent) =>
  app.get(path, (request, reply) =>
    sendStatic(request, reply.header("content-security-policy", DOCS_POLICY), page),
  );

/** Read at the first request. */
function addFile(app: FastifyInstance, path: string, read: () => Promise<StaticContent>): void {
  let content: StaticContent | undefined;
  app.get(path, async (request, reply) => {
    content ??= await read();
    return sendStatic(request, reply, content);
  });
}

const readPlain = async (file: URL, type: string) => new StaticContent(await readFile(file), type);

const decompress = promisify(brotliDecompress);

async function readCompressed(file: URL, type: string): Promise<StaticContent> {
  const br = await readFile(file);
  return new StaticContent(await decompress(br), type, { br });
}

const withCode = (text: string) => escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");

function errorTable(): string {
  const rows = errorCodes.map((code) => {
    const { status, message } = errorCatalogue[code];
    return `<tr id="${code}"><td>${status}</td><td><code>${code}</code></td><td>${withCode(message)}</td><td>${withCode(errorRemedies[code])}</td></tr>`;
  });
  return `<main class="errors"><h1>Errors</h1><p>Every error has the same shape: <code>error.code</code> is for programs, <code>error.message</code> for people, and <code>error.details</code> names the field where there is one.</p>
<table><thead><tr><th>HTTP</th><th>Code</th><th>Meaning</th><th>What to do</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></main>`;
}
