import type { Context } from "../../core/context.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";

/** What went in and what came out: a prompt's variables and its text, a workflow's input and its result. */
export interface ExecutionTexts {
  variables: Record<string, unknown>;
  output: unknown;
}

/** Whose execution it is: what is sealed for one opens for no other. */
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
