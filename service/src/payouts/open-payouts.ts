import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { toId } from "../ids.ts";
import { findAnyOpenPayout } from "./queries.ts";

/** Whoever leaves must not have a payout that may still go either way. */
export async function mustHaveNoOpenPayout(tx: Tx, userId: string): Promise<void> {
  const open = await findAnyOpenPayout(tx, userId);
  if (!open) return;
  const payoutId = toId("payout", open.id);
  throw new ApiError("INVALID_STATE", `A payout to you has not ended yet: wait for ${payoutId}.`, {
    current: "money_open",
    payoutId,
  });
}
