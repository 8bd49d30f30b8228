import type { Context, RequestSource } from "../../core/context.ts";
import type { Queries } from "../db/database.ts";

export interface AuditRecord {
  /** The uuid of the account; null: the operator at the command line, or the service itself. */
  actorId: string | null;
  /** A noun and a past participle: `api_key.revoked`, `user.banned`. */
  action: string;
  target?: { type: string; id: string };
  /** null at the command line. */
  source: RequestSource | null;
  /** Never contains a secret. */
  details?: Record<string, unknown>;
}

/** Runs in the transaction of the audited action, so that both commit or none. */
export const recordAudit = (ctx: Context, tx: Queries, record: AuditRecord): Promise<void> =>
  recordAudits(ctx, tx, [record]);

export async function recordAudits(ctx: Context, tx: Queries, records: AuditRecord[]): Promise<void> {
  const rows = records.map((record) => ({
    id: ctx.newId(),
    actorId: record.actorId,
    action: record.action,
    targetType: record.target?.type ?? null,
    targetId: record.target?.id ?? null,
    ip: record.source?.ip ?? null,
    userAgent: record.source?.userAgent ?? null,
    requestId: record.source?.requestId ?? null,
    details: JSON.stringify(record.details ?? {}),
    createdAt: ctx.now(),
  }));
  await tx.insertInto("auditLog").values(rows).execute();
}
