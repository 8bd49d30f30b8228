import type { Queries } from "../db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../db/paging.ts";

export interface AuditRow {
  id: string;
  actorId: string | null;
  actorName: string | null;
  action: string;
  targetType: string | null;
  targetId: string | null;
  ip: string | null;
  userAgent: string | null;
  requestId: string | null;
  details: Record<string, unknown>;
  createdAt: Date;
}

export interface AuditFilter extends Paging {
  actorId?: string | undefined;
  /** A whole action such as `user.banned`; `noun` selects all actions on one noun. */
  action?: string | undefined;
  noun?: string | undefined;
  targetId?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

function matchingRows(db: Queries, { actorId, action, noun, targetId, from, to }: AuditFilter) {
  let entries = db.selectFrom("auditLog as a");
  if (actorId) entries = entries.where("a.actorId", "=", actorId);
  if (action) entries = entries.where("a.action", "=", action);
  if (noun)
    entries = entries.where((row) => row.fn<boolean>("starts_with", ["a.action", row.val(`${noun}.`)]));
  if (targetId) entries = entries.where("a.targetId", "=", targetId);
  if (from) entries = entries.where("a.createdAt", ">=", from);
  if (to) entries = entries.where("a.createdAt", "<", to);
  return entries;
}

export async function listAuditRows(db: Queries, filter: AuditFilter): Promise<Page<AuditRow>> {
  const items = await matchingRows(db, filter)
    .leftJoin("users as u", "u.id", "a.actorId")
    .select([
      "a.id",
      "a.actorId",
      "u.name as actorName",
      "a.action",
      "a.details",
      "a.targetType",
      "a.targetId",
      "a.createdAt",
      "a.ip",
      "a.userAgent",
      "a.requestId",
    ])
    .orderBy("a.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<AuditRow>()
    .execute();
  return { items, ...(await countRows(db, matchingRows(db, filter).select("a.id"))) };
}
