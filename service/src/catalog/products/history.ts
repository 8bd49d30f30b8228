import type { Move } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { moves } from "./lifecycle.ts";
import { type DeedRow, listDeeds } from "./moderation-queries.ts";
import { mustMayChange } from "./ownership.ts";

const byDeed = new Map(Object.values(moves).map((move) => [move.deed as string, move]));
/** What the audit log calls the moves. */
export const deeds = [...byDeed.keys()];

function moverOf({ action, actorId, authorId }: DeedRow): Move["by"] {
  if (actorId === null) return "operator";
  return actorId === authorId && byDeed.get(action)?.by === "author" ? "author" : "moderator";
}

/** Who of the moderators it was stays in the audit log. */
export const toMove = (row: DeedRow): Move => ({
  action: row.action,
  from: row.details.from,
  to: row.details.to,
  by: moverOf(row),
  reasonCode: row.details.reasonCode ?? null,
  reason: row.details.reason ?? null,
  at: row.createdAt.toISOString(),
});

/** The moves of a product, newest first, for its author and administrators. */
export async function listHistory(
  ctx: Context,
  caller: Member,
  productId: string,
  paging: Paging,
): Promise<Page<Move>> {
  const { id, authorId } = await mustMayChange(ctx, caller, productId);
  const product = { productId: toId("prod", id), authorId };
  return mapPage(await listDeeds(ctx.db, product, { ...paging, deeds }), toMove);
}
