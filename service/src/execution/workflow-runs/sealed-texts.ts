import type { Context } from "../../core/context.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { NO_ITEM, type StepError, type UsageSum } from "./run-state.ts";

/** The input of a run, fixed at its start: later changes of the product or the keys' names do not matter. */
export interface RunInput {
  productId: string;
  version: string;
  /** The JSON text of the definition. */
  definition: string;
  input: Record<string, unknown>;
  /** Public ids of keys, by provider. */
  apiKeys: Record<string, string>;
  /** USD; null: no limit. */
  maxCost: number | null;
  /** Outputs of steps that do not run, by id: only in tests of a draft. */
  pinned?: Record<string, unknown> | undefined;
  /** The callback endpoint that receives status changes. */
  callbackId: string | null;
  /** The run tests its product: it is no use of it. */
  isEvaluation?: true | undefined;
  /** A queued job that the end of the run requests, in the same transaction. */
  endJob?: { name: string; data: object } | undefined;
  /** The span of the request or step that started the run. */
  traceparent?: string | undefined;
}

const startContext = ({ id, userId }: ExecutionRef) => `workflow-start|${userId}|${id}`;
const resultContext = ({ id, userId }: ExecutionRef) => `workflow-result|${userId}|${id}`;
const outputContext = ({ id, userId }: ExecutionRef, key: string) => `workflow-step|${userId}|${id}|${key}`;

const ofRun = {
  key: { execution_id: "uuid" },
  bound: { id: "t.execution_id", userId: "t.user_id" },
} as const;

export const sealedStarts = sealedColumn({
  table: "workflow_runs",
  column: "sealed_start",
  ...ofRun,
  contextOf: startContext,
});

export const sealedResults = sealedColumn({
  table: "workflow_runs",
  column: "sealed_result",
  ...ofRun,
  contextOf: resultContext,
});

export const sealedOutputs = sealedColumn({
  table: "execution_steps",
  column: "sealed_output",
  key: { execution_id: "uuid", step_id: "text", item: "integer" },
  bound: {
    id: "t.execution_id",
    userId: "select r.user_id from workflow_runs r where r.execution_id = t.execution_id",
    // As `stepKey` builds it.
    step: `case when t.item = ${NO_ITEM} then t.step_id else t.step_id || '#' || t.item end`,
  },
  contextOf: ({ id, userId, step }) => outputContext({ id, userId }, step),
});

export const sealRunInput = (ctx: Context, run: ExecutionRef, start: RunInput): string =>
  ctx.vault.seal(JSON.stringify(start), startContext(run));

export const openRunInput = (ctx: Context, run: ExecutionRef, sealed: string): RunInput =>
  JSON.parse(ctx.vault.open(sealed, startContext(run)));

/** The result of a child run, for the step that called it. */
export const sealResult = (ctx: Context, run: ExecutionRef, result: ChildResult): string =>
  ctx.vault.seal(JSON.stringify(result), resultContext(run));

export const openResult = (ctx: Context, run: ExecutionRef, sealed: string): ChildResult =>
  JSON.parse(ctx.vault.open(sealed, resultContext(run)));

export interface ChildResult {
  output: unknown;
  error: StepError | null;
  usage: UsageSum;
}

/** `key` names the step, so that a row that was moved does not open. */
export const sealOutput = (ctx: Context, run: ExecutionRef, key: string, json: string): string =>
  ctx.vault.seal(json, outputContext(run, key));

export const openOutput = (ctx: Context, run: ExecutionRef, key: string, sealed: string): unknown =>
  JSON.parse(ctx.vault.open(sealed, outputContext(run, key)));
