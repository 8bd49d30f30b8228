import type { AuditEntry } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { EMPTY_PAGE, mapPage, type Page, type Paging } from "../db/paging.ts";
import { type AuditRow, listAuditRows } from "./queries.ts";

const toEntry = (row: AuditRow): AuditEntry => ({
  id: toId("aud", row.id),
  actor: row.actorId === null ? null : { id: toId("usr", row.actorId), name: row.actorName },
  action: row.action,
  target: row.targetType && row.targetId ? { type: row.targetType, id: row.targetId } : null,
  ip: row.ip,
  userAgent: row.userAgent,
  requestId: row.requestId,
  details: row.details,
  createdAt: row.createdAt.toISOString(),
});

interface AuditQuery extends Paging {
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const momentOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text));

export async function listAudit(ctx: Context, query: AuditQuery): Promise<Page<AuditEntry>> {
  const actorId = query.actor === undefined ? undefined : toUuid("usr", query.actor);
  if (actorId === null) return EMPTY_PAGE;
  const { page, limit, action, target: targetId } = query;
  const filter = action?.endsWith(".*") ? { noun: action.slice(0, -2) } : { action };
  const span = { from: momentOf(query.from), to: momentOf(query.to) };
  return mapPage(
    await listAuditRows(ctx.db, { page, limit, actorId, targetId, ...filter, ...span }),
    toEntry,
  );
}
