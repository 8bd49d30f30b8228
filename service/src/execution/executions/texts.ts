import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";

const TEXT_RETENTION_DAYS = 30;

/** Texts of older executions are erased. */
export const startOfTextRetention = (ctx: Context): Date => daysAfter(ctx.now(), -TEXT_RETENTION_DAYS);

/** A prompt's variables and output, or a workflow's input and result. */
export interface ExecutionTexts {
  variables: Record<string, unknown>;
  output: unknown;
}

/** An execution, and the run of a workflow under the same id. Both ids are bound to sealed columns: a text opens in its own row only. */
export interface ExecutionRef {
  id: string;
  userId: string;
}

const contextOf = ({ userId, id }: ExecutionRef) => `execution|${userId}|${id}`;

export const sealedTexts = sealedColumn({
  table: "executions",
  column: "sealed_texts",
  key: { id: "uuid" },
  bound: { userId: "t.user_id", id: "t.id" },
  contextOf,
});

export const sealTexts = (ctx: Context, execution: ExecutionRef, texts: ExecutionTexts): string =>
  ctx.vault.seal(JSON.stringify(texts), contextOf(execution));

export const openTexts = (ctx: Context, execution: ExecutionRef, sealed: string): ExecutionTexts =>
  JSON.parse(ctx.vault.open(sealed, contextOf(execution)));
