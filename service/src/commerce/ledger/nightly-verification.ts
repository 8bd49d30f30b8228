import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { findLastVerificationRow, insertVerification } from "./queries.ts";
import { verifyLedger } from "./verification.ts";

/** `ledger verify` lists all problems; the log shows the first. */
const MAX_LOGGED = 10;

/** Stores the result for /metrics and `doctor`. */
export async function verifyLedgerNightly(ctx: Context): Promise<void> {
  const begunAt = ctx.now();
  const { problems, transactions, entries } = await verifyLedger(ctx.db);
  await insertVerification(ctx.db, {
    begunAt,
    endedAt: ctx.now(),
    transactions,
    entries,
    problems: problems.length,
  });
  if (problems.length > 0)
    ctx.log.error(
      { count: problems.length, problems: problems.slice(0, MAX_LOGGED) },
      "the ledger is wrong: `stoa-server ledger verify` lists the problems",
    );
}

export const findLastVerification = (db: Queries) => findLastVerificationRow(db);
