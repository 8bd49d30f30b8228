import type { Permission } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface AccountRow {
  id: string;
  email: string;
  name: string;
  emailVerifiedAt: Date | null;
}

/** Neither banned nor closed. */
export const findAccount = (db: Queries, id: string): Promise<AccountRow | undefined> =>
  db
    .selectFrom("users")
    .select(["id", "email", "name", "emailVerifiedAt"])
    .where("id", "=", id)
    .where("bannedAt", "is", null)
    .where("closedAt", "is", null)
    .executeTakeFirst();

export interface ClientRow {
  id: string;
  name: string;
  redirectUris: string[];
  postLogoutRedirectUris: string[];
  grantTypes: string[];
  idTokenAlgorithm: "RS256" | "ES256" | "EdDSA";
  permissions: Permission[] | null;
  secretDigest: Buffer | null;
  createdAt: Date;
}

const clients = (db: Queries) =>
  db
    .selectFrom("oauthClients as c")
    .select([
      "c.id",
      "c.name",
      "c.redirectUris",
      "c.grantTypes",
      "c.postLogoutRedirectUris",
      "c.permissions",
      "c.idTokenAlgorithm",
      "c.secretDigest",
      "c.createdAt",
    ])
    .$castTo<ClientRow>();

/** The owner, where there is one, is neither banned nor closed. */
export const findActiveClient = (db: Queries, id: string) =>
  clients(db)
    .leftJoin("users as o", "o.id", "c.ownerId")
    .where("c.id", "=", id)
    .where("o.bannedAt", "is", null)
    .where("o.closedAt", "is", null)
    .executeTakeFirst();

export async function listOwnClients(db: Queries, ownerId: string, paging: Paging): Promise<Page<ClientRow>> {
  const items = await clients(db)
    .where("c.ownerId", "=", ownerId)
    .orderBy("c.createdAt", "desc")
    .orderBy("c.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  return { items, total: await countOwnClients(db, ownerId) };
}

export async function countOwnClients(db: Queries, ownerId: string): Promise<number> {
  const { count } = await db
    .selectFrom("oauthClients")
    .where("ownerId", "=", ownerId)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Serialises parallel requests, so that the count is exact. */
export const lockAccount = (tx: Tx, id: string) =>
  tx.selectFrom("users").select("id").where("id", "=", id).forUpdate().execute();

export interface NewOwnClient {
  id: string;
  ownerId: string;
  name: string;
  redirectUris: string[];
  postLogoutRedirectUris: string[];
  grantTypes: string[];
  permissions: string[];
  secretDigest: Buffer;
  createdAt: Date;
}

export const insertOwnClient = (db: Queries, client: NewOwnClient) =>
  db.insertInto("oauthClients").values(client).execute();

/** undefined: the owner has no such client. */
export const replaceSecret = (tx: Queries, ownerId: string, id: string, secretDigest: Buffer) =>
  tx
    .updateTable("oauthClients")
    .set({ secretDigest })
    .where("id", "=", id)
    .where("ownerId", "=", ownerId)
    .returning("id")
    .executeTakeFirst();

/** The digest of a random value: no secret matches until the owner rotates it. */
export const invalidateSecretsOfUser = (tx: Queries, ownerId: string) =>
  tx
    .updateTable("oauthClients")
    .set({ secretDigest: sql<Buffer>`sha256(uuid_send(gen_random_uuid()))` })
    .where("ownerId", "=", ownerId)
    .returning("id")
    .execute();

export const deleteOwnClient = (tx: Queries, ownerId: string, id: string) =>
  tx
    .deleteFrom("oauthClients")
    .where("id", "=", id)
    .where("ownerId", "=", ownerId)
    .returning(["id", "name"])
    .executeTakeFirst();

export const deleteOwnClients = (tx: Queries, ownerId: string) =>
  tx.deleteFrom("oauthClients").where("ownerId", "=", ownerId).execute();

export const findOwnClient = (db: Queries, ownerId: string, id: string) =>
  clients(db).where("c.id", "=", id).where("c.ownerId", "=", ownerId).executeTakeFirst();

export interface RegisteredClient {
  id: string;
  name: string;
  redirectUris: string[];
  postLogoutRedirectUris: string[];
  grantTypes: string[];
  idTokenAlgorithm: string;
  network: string;
  now: Date;
  limit: { since: Date; count: number };
}

/** Returns false over the limit of the network. An advisory lock of the network makes the count exact. */
export async function insertRegisteredClient(tx: Tx, client: RegisteredClient): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`oauth registration ${client.network}`}, 0))`.execute(
    tx,
  );
  const { count } = await tx
    .selectFrom("oauthClients")
    .where("registeredFrom", "=", client.network)
    .where("createdAt", ">", client.limit.since)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  if (count >= client.limit.count) return false;
  await tx
    .insertInto("oauthClients")
    .values({
      id: client.id,
      name: client.name,
      redirectUris: client.redirectUris,
      postLogoutRedirectUris: client.postLogoutRedirectUris,
      grantTypes: client.grantTypes,
      idTokenAlgorithm: client.idTokenAlgorithm,
      registeredFrom: client.network,
      createdAt: client.now,
    })
    .execute();
  return true;
}

export interface NewGrant {
  id: string;
  userId: string;
  clientId: string;
  allowed: string;
  createdAt: Date;
  expiresAt: Date;
}

export interface GrantRow extends Omit<NewGrant, "allowed"> {
  clientName: string;
  redirectUris: string[];
  allowed: { openid?: { scope?: string }; resources?: Record<string, string> };
  lastUsedAt: Date | null;
}

const grants = (db: Queries) =>
  db
    .selectFrom("oauthGrants as g")
    .innerJoin("oauthClients as c", "c.id", "g.clientId")
    .selectAll("g")
    .select(["c.name as clientName", "c.redirectUris"])
    .$castTo<GrantRow>();

export const findGrant = (db: Queries, id: string) => grants(db).where("g.id", "=", id).executeTakeFirst();

export const findActiveGrant = (db: Queries, userId: string, clientId: string, now: Date) =>
  grants(db)
    .where("g.userId", "=", userId)
    .where("g.clientId", "=", clientId)
    .where("g.expiresAt", ">", now)
    .orderBy("g.id", "desc")
    .limit(1)
    .executeTakeFirst();

export async function listActiveGrants(db: Queries, userId: string, now: Date, paging: Paging) {
  const own = grants(db).where("g.userId", "=", userId).where("g.expiresAt", ">", now);
  const items = await own.orderBy("g.id", "desc").limit(paging.limit).offset(offsetOf(paging)).execute();
  const { total } = await own
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export const upsertGrant = (tx: Queries, grant: NewGrant) =>
  tx
    .insertInto("oauthGrants")
    .values(grant)
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ allowed: grant.allowed, expiresAt: grant.expiresAt }),
    )
    .execute();

/** undefined: the client was deleted. The lock serialises decisions about it. */
export const lockClient = (tx: Tx, id: string) =>
  tx.selectFrom("oauthClients").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirst();

export const updateGrantLastUsed = (db: Queries, id: string, now: Date) =>
  db.updateTable("oauthGrants").set({ lastUsedAt: now }).where("id", "=", id).execute();

export const deleteGrant = (tx: Queries, id: string) =>
  tx
    .deleteFrom("oauthGrants")
    .where("id", "=", id)
    .returning(["id", "userId", "clientId"])
    .executeTakeFirst();

export const deleteOwnGrant = (tx: Queries, userId: string, id: string) =>
  tx
    .deleteFrom("oauthGrants")
    .where("id", "=", id)
    .where("userId", "=", userId)
    .returning(["id", "clientId"])
    .executeTakeFirst();

export const deleteGrantsOfUser = (tx: Queries, userId: string) =>
  tx.deleteFrom("oauthGrants").where("userId", "=", userId).returning("id").execute();

/** Self-registered clients without any grant. */
export const deleteUnusedClients = (db: Queries, registeredBefore: Date) =>
  db
    .deleteFrom("oauthClients as c")
    .where("c.ownerId", "is", null)
    .where("c.createdAt", "<", registeredBefore)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("oauthGrants as g").select("g.id").whereRef("g.clientId", "=", "c.id"))),
    )
    .execute();
