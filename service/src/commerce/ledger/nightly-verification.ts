import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { findLastVerificationRow, insertVerification } from "./queries.ts";
import { type OnChecked, type VerificationResult, verifyLedger } from "./verification.ts";

/** `ledger verify` lists all problems; the log shows the first. */
const MAX_LOGGED = 10;

export async function verifyLedgerNightly(ctx: Context): Promise<void> {
  const { problems } = await verifyLedgerOnRecord(ctx);
  if (problems.length > 0)
    ctx.log.error(
      { count: problems.length, problems: problems.slice(0, MAX_LOGGED) },
      "the ledger is wrong: `stoa-server ledger verify` lists the problems",
    );
}

/** Stores the result for /metrics and `doctor`. */
export async function verifyLedgerOnRecord(
  ctx: Context,
  onChecked?: OnChecked,
  signal?: AbortSignal,
): Promise<VerificationResult> {
  const begunAt = ctx.now();
  const result = await verifyLedger(ctx.db, onChecked, signal);
  const { problems, transactions, entries } = result;
  await insertVerification(ctx.db, {
    begunAt,
    endedAt: ctx.now(),
    transactions,
    entries,
    problems: problems.length,
  });
  return result;
}

export const findLastVerification = (db: Queries) => findLastVerificationRow(db);
