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
    .selectFrom("oauthFlows")
    .select(["payload", "expiresAt", "consumedAt"])
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
  expiresAt: Date;
}

export const upsertFlow = (db: Queries, flow: NewFlow) =>
  db
    .insertInto("oauthFlows")
    .values(flow)
    .onConflict((conflict) =>
      conflict
        .column("digest")
        .doUpdateSet({ uid: flow.uid, payload: flow.payload, expiresAt: flow.expiresAt }),
    )
    .execute();

export async function consumeFlow(db: Queries, digest: Buffer, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("oauthFlows")
    .set({ consumedAt: now })
    .where("digest", "=", digest)
    .where("consumedAt", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export const deleteFlow = (db: Queries, digest: Buffer) =>
  db.deleteFrom("oauthFlows").where("digest", "=", digest).execute();
