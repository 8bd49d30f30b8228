import type { SharedRun } from "@stoa/contract";
import type { FastifyInstance } from "fastify";
import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html, sendPage } from "../../platform/http/html.ts";
import { readSharedRun } from "./shares.ts";

/** The page behind the public link to a run. Search engines must not list it: its address is the secret. */
export function addSharedRunPage(app: FastifyInstance, ctx: Context): void {
  app.get("/shared/:token", async (request, reply) => {
    const run = await readSharedRun(ctx, (request.params as { token: string }).token);
    return sendPage(reply.header("x-robots-tag", "noindex"), toPage(run));
  });
}

const toPage = (run: SharedRun): HtmlPage => ({
  title: run.product.title,
  wide: true,
  main: html`<section class="card">
<h1 dir="auto">${run.product.title}</h1>
<p class="lead">A run of version ${run.version} that its owner shares.</p>
<dl class="facts">
${run.model !== null && fact("Model", `${run.model}${run.provider === null ? "" : ` by ${run.provider}`}`)}
${fact("Run on", `${run.createdAt.slice(0, 16).replace("T", " ")} UTC`)}
${run.usage !== null && fact("Usage", toUsageText(run.usage))}
</dl>
<h2>Input</h2>
${
  run.type === "PROMPT"
    ? html`<dl class="facts">${Object.entries(run.input).map(([name, value]) => fact(name, code(value)))}</dl>`
    : code(run.input)
}
<h2>Output</h2>
${code(run.output)}
</section>`,
});

const fact = (name: string, value: string | Html): Html => html`<dt>${name}</dt><dd>${value}</dd>\n`;

const code = (value: unknown): Html =>
  html`<pre class="plain" tabindex="0" dir="auto">${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>`;

const toUsageText = ({ totalTokens, estimatedCost, costKnown }: NonNullable<SharedRun["usage"]>): string =>
  `${totalTokens} tokens, ${costKnown ? `$${estimatedCost.toFixed(4)}` : "price unknown"}`;
