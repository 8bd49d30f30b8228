import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import {
  type CaseRuns,
  gradeOutput,
  importTestSet,
  passRate,
  splitAssertions,
  type TestCase,
  type TestSetFormat,
} from "@stoa/evaluation";
import { findSchemaIssues, type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import type { ExecutionResult, Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example, wholeNumber } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { dollars } from "../run/cost.ts";
import { findKeyFor, SANDBOX } from "../run/provider-keys.ts";
import { findRunnableProduct } from "../run/runnable-product.ts";

interface EvalOptions {
  key?: string;
  provider?: string;
  model?: string;
  repeats?: number;
  maxCost?: number;
  minPassRate?: number;
  skipUnsupported?: boolean;
}

export default function define(command: Command): void {
  command
    .argument("<product>", "a prompt that you may run: its id, or words that only its title has")
    .argument("<file>", "promptfoo YAML or CSV, or evals.json of Agent Skills")
    .option("--key <id>", "a provider key, or sandbox (default: your newest that fits)")
    .option("--provider <name>", "use your newest key of this provider")
    .option("--model <name>", "the provider's name of a model")
    .option("--repeats <n>", "how often each test runs (default: 1)", wholeNumber(1))
    .option("--max-cost <usd>", "start no run once the runs have cost this", dollars)
    .option("--min-pass-rate <share>", "the share of runs that must pass, from 0 to 1 (default: 1)", share)
    .option("--skip-unsupported", "run what the file has besides assertions that cannot be decided here")
    .addHelpText(
      "after",
      `\nExit code ${exitCodes.unequal}: fewer runs passed than --min-pass-rate. Assertions that a model judges are not run.`,
    )
    .action(action<EvalOptions, [string, string]>(evaluate));
  example(
    command,
    "stoa eval prod_… promptfooconfig.yaml --key sandbox",
    "stoa eval haiku tests.csv --repeats 3 --min-pass-rate 0.9 --max-cost 0.5 --json",
  );
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0 && value <= 1) return value;
  throw new UsageError(`--min-pass-rate ${text}: not a number from 0 to 1`);
}

interface Run {
  title: string;
  repeat: number;
  /** null: the test has only assertions that a model judges. */
  isPassed: boolean | null;
  reasons: string[];
  executionId: string | null;
  costUsd: number | null;
}

async function evaluate(cli: Cli, options: EvalOptions, text: string, file: string): Promise<void> {
  const cases = await readCases(cli, file, options);
  const stoa = await cli.stoa();
  const product = await findRunnableProduct(stoa, text);
  if (product.type === "WORKFLOW")
    throw new UsageError(
      `${product.id} is a workflow`,
      "Evaluate it at the service: POST /products/{id}/evaluations",
    );
  const apiKeyId = options.key ?? (await findKeyFor(stoa, product, options))?.id ?? SANDBOX;
  if (apiKeyId === SANDBOX && options.key === undefined)
    cli.output.report("No valid key fits: using the sandbox, which calls no model.");
  const runs: Run[] = [];
  let spentUsd = 0;
  for (const testCase of cases)
    for (let repeat = 1; repeat <= (options.repeats ?? 1); repeat++) {
      if (options.maxCost !== undefined && spentUsd >= options.maxCost)
        throw new CommandError(
          `The runs have cost ${spentUsd} USD: --max-cost is reached after ${runs.length} runs`,
          "Allow more with --max-cost, or run fewer tests.",
        );
      const request = { productId: product.id, apiKeyId, model: options.model };
      const run = await runCase(stoa, testCase, request, repeat);
      spentUsd += run.costUsd ?? 0;
      runs.push(run);
      if (!cli.output.isJson) report(cli, run);
    }
  summarize(cli, runs, options.minPassRate ?? 1, spentUsd);
}

async function readCases(cli: Cli, file: string, { skipUnsupported }: EvalOptions): Promise<TestCase[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`Cannot read ${file} (${error.code})`);
  });
  const checkSchema = (schema: unknown) => findSchemaIssues(schema, []).map(({ reason }) => reason);
  const { cases, problems } = importTestSet(formatOf(file, text), text, { checkSchema });
  for (const { line, path, reason } of problems)
    cli.output.report(withoutControls(`${file}${line === null ? "" : `:${line}`}: ${path} ${reason}`));
  if (problems.length > 0 && !skipUnsupported)
    throw new UsageError(
      `${file} has ${problems.length} parts that cannot be evaluated`,
      "Change them, or leave them out with --skip-unsupported.",
    );
  if (cases.length === 0) throw new UsageError(`${file} has no tests`);
  return cases;
}

function formatOf(file: string, text: string): TestSetFormat {
  const extension = extname(file).toLowerCase();
  if (extension === ".csv") return "promptfoo-csv";
  if (extension === ".json" && /"evals"\s*:/.test(text)) return "agent-skills";
  if ([".yaml", ".yml", ".json"].includes(extension)) return "promptfoo-yaml";
  throw new UsageError(`${file}: the format is not known`, "Name it .yaml, .yml, .csv or evals.json.");
}

interface RunRequest {
  productId: string;
  apiKeyId: string;
  model: string | undefined;
}

async function runCase(
  stoa: Stoa,
  testCase: TestCase,
  { model, ...request }: RunRequest,
  repeat: number,
): Promise<Run> {
  const facts = { title: testCase.title, repeat };
  const isDecided = splitAssertions(testCase).deterministic.length > 0;
  try {
    const result = await stoa.ai.execute({
      ...request,
      variables: testCase.input as Record<string, string>,
      ...(model !== undefined && { options: { model } }),
    });
    return { ...facts, ...grade(testCase, result) };
  } catch (error) {
    // Not imported above: the help of the command would load the SDK, whose build a fresh clone does not have.
    const { ApiError } = await import("@stoa/sdk");
    if (!(error instanceof ApiError) || error.status === 401 || error.status === 403) throw error;
    const reasons = [`the run failed: ${error.code} ${error.message}`];
    return { ...facts, isPassed: isDecided ? false : null, reasons, executionId: null, costUsd: null };
  }
}

function grade(
  testCase: TestCase,
  { executionId, output, usage, metadata }: ExecutionResult,
): Omit<Run, "title" | "repeat"> {
  const costUsd = usage.costKnown ? usage.estimatedCost : null;
  const graded = { output, costUsd, latencyMs: metadata.duration * 1_000 };
  const { isPassed, assertions } = gradeOutput(testCase, graded, { validateSchema });
  const reasons = assertions.filter((one) => !one.isPassed).map(({ type, reason }) => `${type}: ${reason}`);
  return { isPassed, reasons, executionId, costUsd };
}

const validateSchema = (schema: unknown, value: unknown): string[] =>
  validateValue(schema as JsonSchema, value).map(({ reason }) => reason);

function report({ output }: Cli, { title, repeat, isPassed, reasons }: Run): void {
  const verdict = isPassed === null ? "not run" : isPassed ? "passed" : "FAILED";
  output.line(withoutControls(`${verdict}  ${title}${repeat > 1 ? ` (run ${repeat})` : ""}`));
  if (isPassed === false) for (const reason of reasons) output.line(withoutControls(`        ${reason}`));
}

function summarize({ output }: Cli, runs: Run[], minPassRate: number, spentUsd: number): void {
  const counted = runs.filter(({ isPassed }) => isPassed !== null);
  const passed = counted.filter(({ isPassed }) => isPassed).length;
  const rate = passRate(countByCase(counted));
  if (output.isJson) output.json({ passed, runs: counted.length, rate, costUsd: spentUsd, results: runs });
  else if (rate)
    output.report(
      `${passed} of ${counted.length} passed: ${percent(rate.rate)} (95 % interval ${percent(rate.low)} to ${percent(rate.high)}), USD ${spentUsd}`,
    );
  if (counted.length === 0)
    throw new UsageError("No test has an assertion that can be decided without a model");
  if (passed / counted.length < minPassRate) process.exitCode = exitCodes.unequal;
}

/** Node 20 has no Map.groupBy. */
function countByCase(runs: Run[]): CaseRuns[] {
  const cases = new Map<string, CaseRuns>();
  for (const { title, isPassed } of runs) {
    const one = cases.get(title) ?? { passed: 0, runs: 0 };
    cases.set(title, { passed: one.passed + (isPassed ? 1 : 0), runs: one.runs + 1 });
  }
  return [...cases.values()];
}

const percent = (value: number): string => `${Math.round(value * 100)} %`;
