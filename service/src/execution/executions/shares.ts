import { randomBytes } from "node:crypto";
import type { ExecutionShare, SharedRun } from "@stoa/contract";
import { mustNotBeWithheld } from "../../catalog/products/product-lookup.ts";
import type { Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { retryOnDeadlock, type Tx } from "../../platform/db/database.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { type ExecutionRow, findExecution } from "./queries.ts";
import {
  deleteShare,
  findSharedRun,
  findShareRow,
  insertShare,
  lockExecution,
  type ShareRow,
} from "./share-queries.ts";
import { type ExecutionRef, openTexts, startOfTextRetention } from "./texts.ts";
import { toUsage } from "./usage.ts";

const TOKEN_BYTES = 24;
const TOKEN = /^[\w-]{32}$/;

const contextOf = ({ userId, id }: ExecutionRef) => `execution-share|${userId}|${id}`;

export const sealedShareTokens = sealedColumn({
  table: "execution_shares",
  column: "sealed_token",
  key: { execution_id: "uuid" },
  bound: { userId: "t.user_id", id: "t.execution_id" },
  contextOf,
});

/** Returns the same link to each request until the link ends. */
export async function shareExecution(
  ctx: Context,
  { userId }: Member,
  executionId: string,
): Promise<ExecutionShare> {
  const id = toUuid("exec", executionId);
  const share = async (tx: Tx) => {
    const run = id ? await lockExecution(tx, userId, id) : undefined;
    if (!run) throw new ApiError("EXECUTION_NOT_FOUND");
    await mustBeShareable(ctx, tx, run);
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    await insertShare(tx, {
      executionId: run.id,
      userId,
      tokenDigest: digestOf(token),
      sealedToken: ctx.vault.seal(token, contextOf(run)),
      createdAt: ctx.now(),
    });
    return required(await findShareRow(tx, run.id, startOfTextRetention(ctx)), "the new share");
  };
  // The closing of the account waits for the execution, and a new row for the closing.
  return toShare(ctx, await retryOnDeadlock(() => ctx.db.transaction().execute(share)));
}

/** Its answer is the rendered prompt, which belongs to the author of the product. */
const ECHO_MODEL = "sandbox-echo";

async function mustBeShareable(
  ctx: Context,
  tx: Tx,
  run: ExecutionRow & { sealedTexts: string | null },
): Promise<void> {
  if (run.status !== "completed")
    throw new ApiError("INVALID_STATE", "Only a completed execution can be shared.", {
      current: run.status,
      allowed: ["completed"],
    });
  if (run.sealedTexts === null || run.createdAt < startOfTextRetention(ctx))
    throw ruleViolation("executionId", "has no stored texts: they are not stored, or older than 30 days");
  if ((await ctx.executionKinds[run.type].listModels(tx, run)).includes(ECHO_MODEL))
    throw ruleViolation("executionId", `is a run of ${ECHO_MODEL}, whose output is the product's text`);
  await mustNotBeWithheld(tx, run.productId);
}

function toShare(ctx: Context, { executionId, userId, sealedToken, createdAt }: ShareRow): ExecutionShare {
  const token = ctx.vault.open(sealedToken, contextOf({ id: executionId, userId }));
  return { url: `${ctx.links.origin()}/shared/${token}`, createdAt: createdAt.toISOString() };
}

/** null: it has no link that works. */
export async function findShare(ctx: Context, { id }: ExecutionRef): Promise<ExecutionShare | null> {
  const row = await findShareRow(ctx.db, id, startOfTextRetention(ctx));
  return row ? toShare(ctx, row) : null;
}

export async function unshareExecution(ctx: Context, { userId }: Member, executionId: string) {
  const id = toUuid("exec", executionId);
  const run = id ? await findExecution(ctx.db, userId, id) : undefined;
  if (!run) throw new ApiError("EXECUTION_NOT_FOUND");
  await deleteShare(ctx.db, run.id);
  return { executionId: toId("exec", run.id), shared: false as const };
}

export async function readSharedRun(ctx: Context, token: string): Promise<SharedRun> {
  const run = TOKEN.test(token)
    ? await findSharedRun(ctx.db, digestOf(token), startOfTextRetention(ctx))
    : undefined;
  if (!run) throw new ApiError("SHARED_RUN_NOT_FOUND");
  const { variables, output } = openTexts(ctx, run, run.sealedTexts);
  return {
    type: run.type,
    product: { id: toId("prod", run.productId), title: run.title, onSale: run.isOnSale },
    version: run.productVersion,
    provider: run.provider,
    model: run.model,
    input: variables,
    output,
    usage: toUsage(run),
    createdAt: run.createdAt.toISOString(),
  };
}
