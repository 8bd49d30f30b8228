import type { SharedRun } from "@stoa/contract";
import { type Html, html } from "../../platform/http/html.ts";
import type { ClientPage } from "./client-page.ts";

/** The page behind the public link to a run, in plain HTML. Its address is the secret. */
export const sharedRunPage = (run: SharedRun): ClientPage => ({
  title: run.product.title,
  isSecret: true,
  main: html`<main class="page shared" id="content">
<h1 class="title" dir="auto">${run.product.title}</h1>
<p>A run of version ${run.version} that its owner shares.</p>
<dl class="kv">
${run.model !== null && fact("Model", `${run.model}${run.provider === null ? "" : ` by ${run.provider}`}`)}
${fact("Run on", `${run.createdAt.slice(0, 16).replace("T", " ")} UTC`)}
${run.usage !== null && fact("Usage", toUsageText(run.usage))}
</dl>
<h2>Input</h2>
${
  run.type === "PROMPT"
    ? html`<dl>${Object.entries(run.input).map(([name, value]) => fact(name, code(value)))}</dl>`
    : code(run.input)
}
<h2>Output</h2>
${code(run.output)}
</main>`,
});

const fact = (name: string, value: string | Html): Html => html`<dt>${name}</dt><dd>${value}</dd>\n`;

const code = (value: unknown): Html =>
  html`<pre class="codeblock wrap" dir="auto">${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>`;

const toUsageText = ({ totalTokens, estimatedCost, costKnown }: NonNullable<SharedRun["usage"]>): string =>
  `${totalTokens} tokens, ${costKnown ? `$${estimatedCost.toFixed(4)}` : "price unknown"}`;
