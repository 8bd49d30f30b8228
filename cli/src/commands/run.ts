import type { Execute, ExecutionResult, ProductDetail, Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example, wholeNumber } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { describeUsage, dollars } from "../run/cost.ts";
import { findKeyFor, SANDBOX, toSandboxError } from "../run/provider-keys.ts";
import { findRunnableProduct } from "../run/runnable-product.ts";
import { readVariables, type VariableOptions, variableOptions } from "../run/variables.ts";

interface RunOptions extends VariableOptions {
  key?: string;
  provider?: string;
  model?: string;
  maxTokens?: number;
  maxCost?: number;
  productVersion?: string;
  stream: boolean;
}

/** How often a broken stream is opened again without a new event. */
const MAX_RECONNECTS = 5;

export default function define(command: Command): void {
  variableOptions(
    command.argument("<product>", "its id, or words that only its title has among your products"),
  )
    .option("--key <id>", "a provider key, or sandbox (default: your newest that fits)")
    .option("--provider <name>", "use your newest key of this provider")
    .option("--model <name>", "the provider's name of a model")
    .option("--max-tokens <n>", "the longest answer", wholeNumber(1))
    .option("--max-cost <usd>", "make no call that may cost more", dollars)
    .option("--product-version <version>", "a version that you may run")
    .option("--no-stream", "print the output at the end, not as it comes")
    .addHelpText(
      "after",
      "\nThe output goes to standard output, usage to standard error. Ctrl-C cancels the run.",
    )
    .action(action<RunOptions, [string]>(run));
  example(
    command,
    'stoa run prod_… --var topic="the sea"',
    "stoa run haiku --var-file topic=topic.txt --key sandbox > haiku.txt",
  );
}

async function run(cli: Cli, options: RunOptions, text: string): Promise<void> {
  const stoa = await cli.stoa();
  const product = await findRunnableProduct(stoa, text);
  if (product.type === "WORKFLOW")
    throw new UsageError(`${product.id} is a workflow`, `Run it: stoa workflows run ${product.id}`);
  const variables = await readVariables(options, product.variables);
  const key = options.key ?? (await findKeyFor(stoa, product, options))?.id;
  if (key === undefined) mustAllowSandbox(cli, product, options);
  const request: Execute = {
    productId: product.id,
    apiKeyId: key ?? SANDBOX,
    variables,
    options: toRunOptions(options),
  };
  const result = await execute(cli, request, options.stream).catch((error) => {
    throw key === undefined ? toSandboxError(error, product.compatibility) : error;
  });
  if (cli.output.isJson || !options.stream) await printOutput(cli, result);
  const { model, provider, duration } = result.metadata;
  const facts = [`${provider} ${model}`, describeUsage(result.usage), `${duration} s`, result.executionId];
  cli.output.report(cli.output.style("dim", withoutControls(facts.join(" · ")), process.stderr));
}

function mustAllowSandbox({ output }: Cli, { compatibility }: ProductDetail, { provider }: RunOptions): void {
  if (provider !== undefined && provider !== SANDBOX)
    throw new CommandError(
      `You have no valid key of ${provider} that fits this product`,
      `Store one: stoa keys add ${provider}`,
    );
  output.report(`No valid key of ${compatibility.join(", ")}: using the sandbox, which calls no model.`);
}

function toRunOptions({ model, maxTokens, maxCost, productVersion }: RunOptions) {
  return {
    ...(model !== undefined && { model }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxCost !== undefined && { maxCost }),
    ...(productVersion !== undefined && { version: productVersion }),
  };
}

async function printOutput({ output }: Cli, result: ExecutionResult): Promise<void> {
  if (output.isJson) return output.object(result, []);
  await output.write(toTerminal(result.output));
  endLine(result.output);
}

/** Starts the run in the background, so that it has an id by which Ctrl-C cancels it at any time. */
async function execute(cli: Cli, request: Execute, isStreamed: boolean): Promise<ExecutionResult> {
  const stoa = await cli.stoaBeyondInterrupt();
  const { executionId } = await stoa.ai.executeInBackground(request);
  try {
    return await follow(cli, stoa, executionId, isStreamed && !cli.output.isJson);
  } catch (error) {
    if (cli.signal.aborted) {
      await stoa.ai.executions.cancel(executionId).catch(() => {});
      cli.output.report(`\nCanceled: ${executionId}`);
    }
    throw error;
  }
}

interface RunEvent {
  type: string;
  data: { text?: string; code?: string; message?: string; docUrl?: string };
}

async function follow(
  cli: Cli,
  stoa: Stoa,
  executionId: string,
  isStreamed: boolean,
): Promise<ExecutionResult> {
  const events = stoa.ai.executions.events(
    executionId,
    {},
    { signal: cli.signal, maxRetries: MAX_RECONNECTS },
  );
  let printed = "";
  const print = async (text: string) => {
    if (!isStreamed) return;
    printed += text;
    await cli.output.write(toTerminal(text));
  };
  for await (const { type, data } of events as AsyncIterable<RunEvent>) {
    if (type === "output.delta") await print(data.text ?? "");
    if (type === "execution.completed") {
      const result = data as unknown as ExecutionResult;
      // A stream that was opened again after the end has only that.
      await print(result.output.slice(printed.length));
      endLine(printed);
      return result;
    }
    if (type !== "execution.failed" && type !== "execution.canceled") continue;
    endLine(printed);
    throw toRunError(executionId, data);
  }
  throw new CommandError(
    "The connection to the run was lost",
    `The run goes on: stoa executions get ${executionId}`,
  );
}

const toRunError = (executionId: string, { code, message, docUrl }: RunEvent["data"]) =>
  new CommandError(`The run ${executionId} failed: ${withoutControls(message ?? "")} (${code})`, docUrl);

/** A terminal gets no control characters of a model, and a pipe every byte. */
const toTerminal = (text: string): string => (process.stdout.isTTY ? withoutControls(text) : text);

function endLine(text: string): void {
  if (process.stdout.isTTY && text !== "" && !text.endsWith("\n")) process.stdout.write("\n");
}
