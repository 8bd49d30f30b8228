import type { AdapterPayload } from "oidc-provider";
import type { Queries } from "../../platform/db/database.ts";

export type FlowKind = "Session" | "Interaction" | "PushedAuthorizationRequest";

export interface FlowRow {
  payload: AdapterPayload;
  expiresAt: Date;
  consumedAt: Date | null;
}

const flows = (db: Queries, kind: FlowKind) =>
  db
    .selectFrom("oauth_flows")
    .select(["payload", "expires_at as expiresAt", "consumed_at as consumedAt"])
    .where("kind", "=", kind)
    .$castTo<FlowRow>();

export const findFlow = (db: Queries, kind: FlowKind, digest: Buffer) =>
  flows(db, kind).where("digest", "=", digest).executeTakeFirst();

export const findFlowByUid = (db: Queries, kind: FlowKind, uid: string) =>
  flows(db, kind).where("uid", "=", uid).executeTakeFirst();

export interface NewFlow {
  digest: Buffer;
  kind: FlowKind;
  uid: string | null;
  payload: string;
  expires_at: Date;
}

export const upsertFlow = (db: Queries, flow: NewFlow) =>
  db
    .insertInto("oauth_flows")
    .values(flow)
    .onConflict((conflict) =>
      conflict
        .column("digest")
        .doUpdateSet({ uid: flow.uid, payload: flow.payload, expires_at: flow.expires_at }),
    )
    .execute();

export async function consumeFlow(db: Queries, digest: Buffer, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("oauth_flows")
    .set({ consumed_at: now })
    .where("digest", "=", digest)
    .where("consumed_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export const deleteFlow = (db: Queries, digest: Buffer) =>
  db.deleteFrom("oauth_flows").where("digest", "=", digest).execute();
