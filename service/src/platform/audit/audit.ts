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
export const recordAudit = (ctx: Context, tx: Queries, deed: AuditRecord): Promise<void> =>
  recordAudits(ctx, tx, [deed]);

export async function recordAudits(ctx: Context, tx: Queries, deeds: AuditRecord[]): Promise<void> {
  const rows = deeds.map((deed) => ({
    id: ctx.newId(),
    actorId: deed.actorId,
    action: deed.action,
    targetType: deed.target?.type ?? null,
    targetId: deed.target?.id ?? null,
    ip: deed.source?.ip ?? null,
    userAgent: deed.source?.userAgent ?? null,
    requestId: deed.source?.requestId ?? null,
    details: JSON.stringify(deed.details ?? {}),
    createdAt: ctx.now(),
  }));
  await tx.insertInto("auditLog").values(rows).execute();
}
