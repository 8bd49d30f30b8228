/** Runs the named scenarios, or all. Prints their tables and writes them into README.md. */
import { machine } from "./machine.ts";
import { LISTINGS, type Options, readOptions } from "./options.ts";
import { endAll } from "./processes.ts";
import { type Report, toMarkdown, writeReport } from "./report.ts";
import { measureAnalytics } from "./scenarios/analytics.ts";
import { measureAuthenticate } from "./scenarios/authenticate.ts";
import { measureCatalogue } from "./scenarios/catalogue.ts";
import { measureClicks } from "./scenarios/clicks.ts";
import { measureCommandLine } from "./scenarios/command-line.ts";
import { measureDuplicates } from "./scenarios/duplicates.ts";
import { measureExecute } from "./scenarios/execute.ts";
import { measureExpressions } from "./scenarios/expressions.ts";
import { measureLedger } from "./scenarios/ledger.ts";
import { measureLimits } from "./scenarios/limits.ts";
import { measureList } from "./scenarios/list.ts";
import { measurePages } from "./scenarios/pages.ts";
import { measureProcesses } from "./scenarios/processes.ts";
import { measurePurchases } from "./scenarios/purchases.ts";
import { measureScan } from "./scenarios/scan.ts";
import { measureSdkTypes } from "./scenarios/sdk-types.ts";
import { measureSize } from "./scenarios/size.ts";
import { measureStart } from "./scenarios/start.ts";
import { measureStreams } from "./scenarios/streams.ts";
import { measureTryOuts } from "./scenarios/try-outs.ts";
import { measureWebhookLists } from "./scenarios/webhook-lists.ts";
import { measureWebhooks } from "./scenarios/webhooks.ts";
import { measureWorkflowEditor } from "./scenarios/workflow-editor.ts";
import { measureWorkflows } from "./scenarios/workflows.ts";

const scenarios: Record<string, (options: Options) => Promise<Report>> = {
  start: measureStart,
  size: measureSize,
  list: measureList,
  processes: measureProcesses,
  catalogue: measureCatalogue,
  duplicates: measureDuplicates,
  scan: measureScan,
  execute: measureExecute,
  streams: measureStreams,
  "try-outs": measureTryOuts,
  expressions: measureExpressions,
  limits: measureLimits,
  authenticate: measureAuthenticate,
  purchases: measurePurchases,
  ledger: measureLedger,
  analytics: measureAnalytics,
  webhooks: measureWebhooks,
  workflows: measureWorkflows,
  "webhook-lists": measureWebhookLists,
  pages: measurePages,
  clicks: measureClicks,
  "workflow-editor": measureWorkflowEditor,
  "sdk-types": measureSdkTypes,
  "command-line": measureCommandLine,
};

async function runAll(options: Options): Promise<void> {
  const names = options.scenarios.length > 0 ? options.scenarios : Object.keys(scenarios);
  const unknown = names.find((name) => !scenarios[name]);
  if (unknown)
    throw new Error(`There is no scenario ${unknown}; there are ${Object.keys(scenarios).join(", ")}.`);
  for (const name of names) {
    const where = machine();
    const text = `${toMarkdown(await scenarios[name]!(options))}\n\n_${where}_`;
    console.log(`\n## ${name}\n\n${text}`);
    if (isWhole(options)) await writeReport(name, text);
  }
}

/** Neither a part of the queries, a smaller market nor a profiled service is representative. */
const isWhole = ({ profile, questions, listings }: Options) =>
  !profile && questions.test("") && listings === LISTINGS;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
}
try {
  await runAll(readOptions());
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await endAll();
}
