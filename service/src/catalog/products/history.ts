import type { StatusChange } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { moves } from "./lifecycle.ts";
import { type AuditedMoveRow, listMoves } from "./moderation-queries.ts";
import { authorizeChange } from "./ownership.ts";

const byAction = new Map(Object.values(moves).map((move) => [move.auditAction as string, move]));
export const moveActions = [...byAction.keys()];

function actorOf({ action, actorId, authorId }: AuditedMoveRow): StatusChange["by"] {
  if (actorId === null) return "operator";
  return actorId === authorId && byAction.get(action)?.by === "author" ? "author" : "moderator";
}

/** Omits the moderator, who is in the audit log only. */
export const toMove = (row: AuditedMoveRow): StatusChange => ({
  action: row.action,
  from: row.details.from,
  to: row.details.to,
  by: actorOf(row),
  reasonCode: row.details.reasonCode ?? null,
  reason: row.details.reason ?? null,
  at: row.createdAt.toISOString(),
});

/** The moves of a product, newest first. */
export async function listHistory(
  ctx: Context,
  caller: Member,
  productId: string,
  paging: Paging,
): Promise<Page<StatusChange>> {
  const { id, authorId } = await authorizeChange(ctx, caller, productId);
  const product = { productId: toId("prod", id), authorId };
  return mapPage(await listMoves(ctx.db, product, { ...paging, deeds: moveActions }), toMove);
}
