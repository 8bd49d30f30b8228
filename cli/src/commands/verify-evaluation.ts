import { readFile } from "node:fs/promises";
import {
  type EvaluationProofFile,
  type EvaluationVerification,
  type PublicKey,
  type ShownRate,
  verifyEvaluation,
} from "@stoa/evaluation";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";

const KEYS_PATH = "/.well-known/stoa-receipts.json";
const TIMEOUT_MS = 10_000;
const MAX_FILE_BYTES = 64 * 1_024 * 1_024;

export default function define(command: Command): void {
  command
    .argument("<file>", "the proof: what GET /v1/evaluations/{id}/proof answers")
    .option("--keys <file>", "the public keys of the marketplace (default: those of your service)")
    .addHelpText(
      "after",
      `\nWith --keys it needs no network. A marketplace publishes its keys at ${KEYS_PATH}. Only keys that you got from\nthe marketplace prove anything: they never come from the proof.`,
    )
    .action(action<{ keys?: string }, [string]>(verify));
  example(
    command,
    "stoa verify-evaluation proof.json",
    "stoa verify-evaluation proof.json --keys stoa-receipts.json",
  );
}

async function verify(cli: Cli, options: { keys?: string }, file: string): Promise<void> {
  const proof = toProof(await readJson(file), file);
  const keys =
    options.keys === undefined ? await fetchKeys(cli) : toKeys(await readJson(options.keys), options.keys);
  const verification = await verifyEvaluation(proof, keys);
  if (cli.output.isJson) cli.output.json(verification);
  else report(cli, verification);
  const { length } = verification.problems;
  if (length > 0)
    throw new CommandError(`The proof is not valid: ${length} ${length === 1 ? "problem" : "problems"}`);
}

async function readJson(file: string): Promise<unknown> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`Cannot read ${file} (${error.code})`);
  });
  if (bytes.length > MAX_FILE_BYTES) throw new UsageError(`${file} has more than ${MAX_FILE_BYTES} bytes`);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new UsageError(`${file} is not JSON: ${(error as Error).message}`);
  }
}

/** The whole response, or its data. */
function toProof(content: unknown, file: string): EvaluationProofFile {
  const { data = content } = (content ?? {}) as { data?: unknown };
  const proof = (data ?? {}) as Partial<EvaluationProofFile>;
  const isProof =
    typeof proof.statement === "string" &&
    [proof.receipts, proof.cases, proof.outputs].every((list) => Array.isArray(list));
  if (isProof) return proof as EvaluationProofFile;
  throw new UsageError(
    `${file} is no proof of an evaluation`,
    "Save what GET /v1/evaluations/{id}/proof answers.",
  );
}

function toKeys(content: unknown, source: string): PublicKey[] {
  const { keys } = (content ?? {}) as { keys?: unknown };
  if (Array.isArray(keys)) return keys as PublicKey[];
  throw new UsageError(
    `${source} is no JSON Web Key Set`,
    `Save what ${KEYS_PATH} of the marketplace answers.`,
  );
}

async function fetchKeys(cli: Cli): Promise<PublicKey[]> {
  const { baseUrl } = await cli.settings();
  const address = new URL(KEYS_PATH, baseUrl).href;
  const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch((error: Error) => {
    throw new CommandError(`${address} cannot be reached: ${error.message}`, "Pass the keys with --keys.");
  });
  if (!response.ok)
    throw new CommandError(`${address} answers ${response.status}`, "Pass the keys with --keys.");
  return toKeys(await response.json(), address);
}

function report({ output }: Cli, verification: EvaluationVerification): void {
  const { problems, evaluation, regraded, hidden, judged, missingReceipts } = verification;
  for (const problem of problems) output.line(`${output.style("red", "BAD ")} ${withoutControls(problem)}`);
  if (!evaluation || problems.length > 0) return;
  const { iss, product, models, judge, columns } = evaluation;
  output.line(withoutControls(`Signed by ${iss}: ${product.id} version ${product.version}`));
  for (const { model, isSandbox, ...score } of models) {
    const name = `${model ?? "the models of its steps"}${toLabel(isSandbox)}`;
    output.line(withoutControls(`${name}: ${describeRuns(score)}`));
    if (judge && score.judged)
      output.line(
        withoutControls(
          `  judged by ${describeJudge(judge)}: ${describeRuns(score.judged)}, ${score.judged.undecided} undecided`,
        ),
      );
  }
  output.report(
    `Every number follows from the verdicts. ${regraded} verdicts were computed again from their texts; ${hidden} are of hidden tests.`,
  );
  if (judged > 0)
    output.report(
      `${judged} verdicts of the judge follow from its signed answers. The answers can only be believed: no file can repeat them.`,
    );
  if (missingReceipts > 0)
    output.report(
      `${missingReceipts} of ${columns.length} run receipts are missing, because their executions were deleted. Their costs and durations can only be believed.`,
    );
}

const describeJudge = ({
  embedding,
  ...judge
}: NonNullable<NonNullable<EvaluationVerification["evaluation"]>["judge"]>): string =>
  [judge, ...(embedding ? [embedding] : [])]
    .map(({ model, isSandbox }) => model + toLabel(isSandbox))
    .join(" and the embeddings of ");

const toLabel = (isSandbox: boolean): string => (isSandbox ? " (practice provider)" : "");

interface CountedRuns {
  passed: number;
  n: number;
  rate: ShownRate | null;
}

function describeRuns({ passed, n, rate, baseline }: CountedRuns & { baseline: CountedRuns | null }): string {
  const bare = baseline?.rate ? `; without the product ${describe(baseline.rate)}` : "";
  return `${passed} of ${n} runs passed, ${describe(rate)}${bare}`;
}

const describe = (rate: ShownRate | null): string =>
  rate
    ? `${percent(rate.value)} (95 % interval ${percent(rate.low)} to ${percent(rate.high)})`
    : "no verdict";

const percent = (value: number): string => `${Math.round(value * 100)} %`;
