import type { ProductDetail, Stoa, WorkflowExecution } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example, repeated } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { splitPair } from "../fields.ts";
import { withoutControls } from "../output.ts";
import { describeUsage, dollars } from "../run/cost.ts";
import { findKeys, SANDBOX, toSandboxError } from "../run/provider-keys.ts";
import { findRunnableProduct } from "../run/runnable-product.ts";
import { variableOptions } from "../run/variables.ts";
import { type Decision, decide, findWaitingStep, followRun } from "../workflows/follow-run.ts";
import { type InputOptions, listProviders, parseDefinition, readInput } from "../workflows/input.ts";

interface FollowOptions {
  approveAll?: boolean;
  rejectAll?: boolean;
}

interface RunOptions extends InputOptions, FollowOptions {
  key?: string[];
  maxCost?: number;
  productVersion?: string;
  detach?: boolean;
}

export default function define(command: Command): void {
  defineRun(command.command("run").description("Run a workflow and show its steps"));
  defineFollow(command.command("follow").description("Show the steps of a run as they happen"));
  defineDecision(command, "approve", "Approve a step that waits");
  defineDecision(command, "reject", "Reject a step that waits");
  defineRetry(command.command("retry").description("Go on with a run that failed or was canceled"));
  defineCancel(command.command("cancel").description("Cancel a run"));
  example(command, 'stoa workflows run prod_… --var topic="the sea"', "stoa workflows approve exec_…");
}

const followOptions = (command: Command): Command =>
  command
    .option("--approve-all", "approve every step that waits")
    .option("--reject-all", "reject every step that waits");

function defineRun(command: Command): void {
  variableOptions(
    command.argument("<workflow>", "its id, or words that only its title has among your products"),
  )
    .option("--input <file>", "the input as a JSON or YAML file; - is standard input")
    .option(
      "--key <provider=id>",
      "the key for a provider, or sandbox for all (default: your newest keys)",
      repeated,
    )
    .option("--max-cost <usd>", "make no call that is expected to cost more", dollars)
    .option("--product-version <version>", "a version that you may run")
    .option("--detach", "start it and print its id");
  followOptions(command)
    .addHelpText(
      "after",
      "\nThe result goes to standard output, the steps to standard error. Ctrl-C cancels the run.",
    )
    .action(action<RunOptions, [string]>(run));
  example(
    command,
    'stoa workflows run prod_… --var topic="the sea" --key openai=pkey_…',
    "stoa workflows run newsletter --input input.yaml --approve-all > newsletter.md",
  );
}

async function run(cli: Cli, options: RunOptions, text: string): Promise<void> {
  mustBeOneDecision(options);
  // Its calls go on after Ctrl-C, to cancel the run.
  const stoa = await cli.stoaBeyondInterrupt();
  const product = await findRunnableProduct(stoa, text);
  const executionId = await start(cli, stoa, product, options);
  if (options.detach) return cli.output.line(executionId);
  try {
    await followAndPrint(cli, stoa, executionId, options);
  } catch (error) {
    if ((error as Error).name === "AbortError") {
      await stoa.ai.executions.cancel(executionId).catch(() => {});
      cli.output.report(`Canceled: ${executionId}`);
    }
    throw error;
  }
}

async function start(cli: Cli, stoa: Stoa, product: ProductDetail, options: RunOptions): Promise<string> {
  const definition = parseDefinition(product);
  const input = await readInput(options, definition);
  const providers = listProviders(definition);
  const keys = await readKeys(stoa, options.key, providers);
  if (keys.defaults.length > 0)
    cli.output.report(
      `No valid key of ${keys.defaults.join(", ")}: using the sandbox, which calls no model.`,
    );
  const { maxCost, productVersion } = options;
  const body = {
    ...{ input, apiKeys: keys.byProvider },
    options: {
      ...(maxCost !== undefined && { maxCost }),
      ...(productVersion !== undefined && { version: productVersion }),
    },
  };
  cli.signal.throwIfAborted();
  const { executionId } = await stoa.ai.workflows.execute(product.id, body).catch((error) => {
    throw keys.defaults.length > 0 ? toSandboxError(error, keys.defaults) : error;
  });
  return executionId;
}

interface Keys {
  byProvider: Record<string, string>;
  /** Providers for which the sandbox stands in, because there is no key. */
  defaults: string[];
}

async function readKeys(stoa: Stoa, given: string[] | undefined, providers: string[]): Promise<Keys> {
  if (given?.includes(SANDBOX))
    return {
      byProvider: Object.fromEntries([...providers, SANDBOX].map((name) => [name, SANDBOX])),
      defaults: [],
    };
  const own = given
    ? Object.fromEntries(given.map((text) => splitPair(text, "--key")))
    : await findKeys(stoa);
  const missing = given ? [] : providers.filter((name) => name !== SANDBOX && !Object.hasOwn(own, name));
  const sandbox = providers.filter((name) => name === SANDBOX || missing.includes(name));
  return {
    byProvider: { ...own, ...Object.fromEntries(sandbox.map((name) => [name, SANDBOX])) },
    defaults: missing,
  };
}

function defineFollow(command: Command): void {
  followOptions(command.argument("<execution>", "its id")).action(
    action<FollowOptions, [string]>(async (cli, options, executionId) => {
      mustBeOneDecision(options);
      await followAndPrint(cli, await cli.stoa(), executionId, options);
    }),
  );
  example(command, "stoa workflows follow exec_…");
}

function defineDecision(parent: Command, name: Decision, description: string): void {
  const command = parent
    .command(name)
    .description(description)
    .argument("<execution>", "its id")
    .argument("[step]", "its id (default: the only one that waits)")
    .action(
      action<object, [string, string | undefined]>(async (cli, _options, executionId, given) => {
        const stoa = await cli.stoa();
        const stepId = given ?? (await findWaitingStep(stoa, executionId));
        const step = await decide(stoa, executionId, stepId, name);
        cli.output.object(step, [{ field: "stepId", title: "step" }, { field: "decision" }]);
        cli.output.report(`See how the run goes on: stoa workflows follow ${executionId}`);
      }),
    );
  example(command, `stoa workflows ${name} exec_…`, `stoa workflows ${name} exec_… review`);
}

function defineRetry(command: Command): void {
  followOptions(command.argument("<execution>", "its id")).action(
    action<FollowOptions, [string]>(async (cli, options, executionId) => {
      mustBeOneDecision(options);
      const stoa = await cli.stoa();
      await stoa.ai.executions.retry(executionId);
      await followAndPrint(cli, stoa, executionId, options);
    }),
  );
  example(command, "stoa workflows retry exec_…");
}

function defineCancel(command: Command): void {
  command.argument("<execution>", "its id").action(
    action<object, [string]>(async (cli, _options, executionId) => {
      const execution = await (await cli.stoa()).ai.executions.cancel(executionId);
      cli.output.object(execution, [{ field: "id", title: "execution" }, { field: "status" }]);
    }),
  );
  example(command, "stoa workflows cancel exec_…");
}

function mustBeOneDecision({ approveAll, rejectAll }: FollowOptions): void {
  if (approveAll && rejectAll) throw new UsageError("Give either --approve-all or --reject-all");
}

async function followAndPrint(
  cli: Cli,
  stoa: Stoa,
  executionId: string,
  { approveAll, rejectAll }: FollowOptions,
): Promise<void> {
  const decision = approveAll ? "approve" : rejectAll ? "reject" : undefined;
  const execution = await followRun(cli, { stoa, executionId, decision });
  if (execution.status !== "completed") throw toRunError(execution);
  await printResult(cli, execution);
}

const toRunError = ({ executionId, status, error }: WorkflowExecution) =>
  new CommandError(
    `The run ${executionId} ${status === "failed" ? "failed" : "was canceled"}: ${withoutControls(error?.message ?? "")} (${error?.code ?? "canceled"})`,
    `Go on where it stopped: stoa workflows retry ${executionId}`,
  );

/** A text as it is, everything else as JSON. */
async function printResult({ output }: Cli, execution: WorkflowExecution): Promise<void> {
  if (output.isJson) output.object(execution, []);
  else if (typeof execution.output !== "string") output.json(execution.output);
  else if (process.stdout.isTTY) output.line(withoutControls(execution.output));
  else await output.write(execution.output);
  const { usage, duration, executionId } = execution;
  const facts = [usage && describeUsage(usage), `${duration} s`, executionId].filter((fact) => fact);
  output.report(output.style("dim", facts.join(" · "), process.stderr));
}
