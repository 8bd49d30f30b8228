import { createHmac, randomBytes } from "node:crypto";
import type { RunReceipt, SignedRunReceipt } from "@stoa/contract";
import { CompactSign } from "jose";
import { canonicalJson } from "../../core/canonical-json.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { mustFindExecution } from "../executions/executions.ts";
import { type ExecutionRow, findContentHash, findTexts } from "../executions/queries.ts";
import { openTexts } from "../executions/texts.ts";
import { toUsage } from "../executions/usage.ts";
import { RECEIPT_KEYS_PATH } from "./pages.ts";
import { findOrCreateSigningKey, RECEIPT_ALGORITHM } from "./signing-keys.ts";

const TYPE = "stoa-run-receipt";
const SALT_BYTES = 32;
const ENDED = ["completed", "failed", "canceled"] as const;

/**
 * Creates the signed record of an ended run (JWS, RFC 7515, with Ed25519, RFC 8037) from the history. It contains texts as hashes
 * under a salt, which only the owner receives.
 */
export async function createRunReceipt(
  ctx: Context,
  caller: Member,
  executionId: string,
): Promise<SignedRunReceipt> {
  const run = await mustFindExecution(ctx, caller, executionId);
  mustHaveEnded(run);
  return signRun(ctx, ctx.db, run);
}

/** In the transaction `db`, if it is one. */
export async function signRun(ctx: Context, db: Queries, run: ExecutionRow): Promise<SignedRunReceipt> {
  const salt = randomBytes(SALT_BYTES);
  const texts = await hashTexts(ctx, db, run, salt);
  const receipt = await signReceipt(ctx, db, {
    ...(await toRunReceipt(ctx, db, run)),
    texts,
    steps: (await ctx.executionKinds[run.type].listStepUsage?.(db, run)) ?? null,
  });
  return {
    receipt,
    salt: texts && salt.toString("base64url"),
    keysUrl: ctx.links.origin() + RECEIPT_KEYS_PATH,
  };
}

function mustHaveEnded({ status, completedAt }: ExecutionRow): void {
  if (completedAt !== null) return;
  const details = { current: status, allowed: ENDED };
  throw new ApiError("INVALID_STATE", "The execution has not ended.", details);
}

async function toRunReceipt(
  ctx: Context,
  db: Queries,
  run: ExecutionRow,
): Promise<Omit<RunReceipt, "texts" | "steps">> {
  const usage = toUsage(run);
  return {
    iss: ctx.links.origin(),
    iat: Math.floor(ctx.now().getTime() / 1_000),
    execution: {
      ...{ id: toId("exec", run.id), type: run.type, mode: run.mode, status: run.status },
      ...{
        createdAt: run.createdAt.toISOString(),
        completedAt: required(run.completedAt, "the end of a run").toISOString(),
      },
      ...{ durationMs: run.durationMs, attempts: run.attempts },
      ...{ finishReason: run.finishReason, errorCode: run.errorCode },
    },
    product: {
      ...{ id: toId("prod", run.productId), version: run.productVersion },
      contentSha256: (await findContentHash(db, run)) ?? null,
    },
    provider: run.provider,
    model: run.model,
    usage: usage && { ...usage, currency: "USD", prices: run.priceList },
  };
}

/** null: the texts are not stored or were erased. */
async function hashTexts(
  ctx: Context,
  db: Queries,
  run: ExecutionRow,
  salt: Buffer,
): Promise<RunReceipt["texts"]> {
  const sealed = (await findTexts(db, run.id))?.sealed;
  if (!sealed) return null;
  const { variables, output } = openTexts(ctx, run, sealed);
  const hashed = (text: string) => createHmac("sha256", salt).update(text).digest("hex");
  return {
    algorithm: "HMAC-SHA256",
    variables: hashed(canonicalJson(variables)),
    output: output === null ? null : hashed(typeof output === "string" ? output : canonicalJson(output)),
  };
}

async function signReceipt(ctx: Context, db: Queries, receipt: RunReceipt): Promise<string> {
  const { kid, key } = await findOrCreateSigningKey(ctx, db);
  return new CompactSign(new TextEncoder().encode(JSON.stringify(receipt)))
    .setProtectedHeader({ alg: RECEIPT_ALGORITHM, kid, typ: TYPE })
    .sign(key);
}
