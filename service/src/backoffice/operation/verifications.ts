import type { LedgerVerification } from "@stoa/contract";
import { verifyLedgerOnRecord } from "../../commerce/ledger/nightly-verification.ts";
import type { VerificationResult } from "../../commerce/ledger/verification.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import type { AdminActor } from "../admin/admin-action.ts";
import { listTasks, type TaskRow } from "./task-queries.ts";
import { readTask, toTaskState } from "./tasks.ts";

/** A broken ledger may have a problem for each order. */
const MAX_STORED_PROBLEMS = 1_000;
const STEP = "Comparing the ledger with its sources";

export async function startVerification(ctx: Context, actor: AdminActor): Promise<LedgerVerification> {
  const row = await ctx.operatorTasks.start(ctx, actor, {
    kind: "ledger_verification",
    action: "ledger_verification.started",
    firstStep: STEP,
    run: async (_, report, signal) => {
      const onChecked = (done: number, total: number) => report({ step: STEP, done, total });
      return toResult(await verifyLedgerOnRecord(ctx, onChecked, signal));
    },
  });
  return toVerification(ctx, row);
}

const toResult = ({ problems, ...counts }: VerificationResult) => ({
  ...counts,
  problemCount: problems.length,
  problems: problems.slice(0, MAX_STORED_PROBLEMS),
});

function toVerification(ctx: Context, row: TaskRow): LedgerVerification {
  const state = toTaskState(ctx, row);
  const result = row.result as LedgerVerification["result"];
  return { id: toId("lvf", row.id), ...state, result: state.status === "succeeded" ? result : null };
}

export async function readVerification(ctx: Context, id: string): Promise<LedgerVerification> {
  const row = await readTask(ctx, "ledger_verification", toUuid("lvf", id));
  if (!row) throw new ApiError("LEDGER_VERIFICATION_NOT_FOUND");
  return toVerification(ctx, row);
}

export async function listVerifications(ctx: Context, paging: Paging): Promise<Page<LedgerVerification>> {
  return mapPage(await listTasks(ctx.db, "ledger_verification", paging), (row) => toVerification(ctx, row));
}
