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
    .select(["id", "email", "name", "email_verified_at as emailVerifiedAt"])
    .where("id", "=", id)
    .where("banned_at", "is", null)
    .where("closed_at", "is", null)
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
    .selectFrom("oauth_clients as c")
    .select([
      ...(["c.id", "c.name", "c.redirect_uris as redirectUris", "c.grant_types as grantTypes"] as const),
      ...(["c.post_logout_redirect_uris as postLogoutRedirectUris", "c.permissions"] as const),
      ...(["c.id_token_algorithm as idTokenAlgorithm", "c.secret_digest as secretDigest"] as const),
      "c.created_at as createdAt",
    ])
    .$castTo<ClientRow>();

/** The owner, where there is one, is neither banned nor closed. */
export const findActiveClient = (db: Queries, id: string) =>
  clients(db)
    .leftJoin("users as o", "o.id", "c.owner_id")
    .where("c.id", "=", id)
    .where("o.banned_at", "is", null)
    .where("o.closed_at", "is", null)
    .executeTakeFirst();

export async function listOwnClients(db: Queries, ownerId: string, paging: Paging): Promise<Page<ClientRow>> {
  const items = await clients(db)
    .where("c.owner_id", "=", ownerId)
    .orderBy("c.created_at", "desc")
    .orderBy("c.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  return { items, total: await countOwnClients(db, ownerId) };
}

export async function countOwnClients(db: Queries, ownerId: string): Promise<number> {
  const { count } = await db
    .selectFrom("oauth_clients")
    .where("owner_id", "=", ownerId)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Serialises parallel requests, so that the count is exact. */
export const lockAccount = (tx: Tx, id: string) =>
  tx.selectFrom("users").select("id").where("id", "=", id).forUpdate().execute();

export interface NewOwnClient {
  id: string;
  owner_id: string;
  name: string;
  redirect_uris: string[];
  post_logout_redirect_uris: string[];
  grant_types: string[];
  permissions: string[];
  secret_digest: Buffer;
  created_at: Date;
}

export const insertOwnClient = (db: Queries, client: NewOwnClient) =>
  db.insertInto("oauth_clients").values(client).execute();

/** undefined: the owner has no such client. */
export const replaceSecret = (tx: Queries, ownerId: string, id: string, secretDigest: Buffer) =>
  tx
    .updateTable("oauth_clients")
    .set({ secret_digest: secretDigest })
    .where("id", "=", id)
    .where("owner_id", "=", ownerId)
    .returning("id")
    .executeTakeFirst();

/** The digest of a random value: no secret matches until the owner rotates it. */
export const invalidateSecretsOfUser = (tx: Queries, ownerId: string) =>
  tx
    .updateTable("oauth_clients")
    .set({ secret_digest: sql<Buffer>`sha256(uuid_send(gen_random_uuid()))` })
    .where("owner_id", "=", ownerId)
    .returning("id")
    .execute();

export const deleteOwnClient = (tx: Queries, ownerId: string, id: string) =>
  tx
    .deleteFrom("oauth_clients")
    .where("id", "=", id)
    .where("owner_id", "=", ownerId)
    .returning(["id", "name"])
    .executeTakeFirst();

export const deleteOwnClients = (tx: Queries, ownerId: string) =>
  tx.deleteFrom("oauth_clients").where("owner_id", "=", ownerId).execute();

export const findOwnClient = (db: Queries, ownerId: string, id: string) =>
  clients(db).where("c.id", "=", id).where("c.owner_id", "=", ownerId).executeTakeFirst();

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
    .selectFrom("oauth_clients")
    .where("registered_from", "=", client.network)
    .where("created_at", ">", client.limit.since)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  if (count >= client.limit.count) return false;
  await tx
    .insertInto("oauth_clients")
    .values({
      id: client.id,
      name: client.name,
      redirect_uris: client.redirectUris,
      post_logout_redirect_uris: client.postLogoutRedirectUris,
      grant_types: client.grantTypes,
      id_token_algorithm: client.idTokenAlgorithm,
      registered_from: client.network,
      created_at: client.now,
    })
    .execute();
  return true;
}

export interface GrantRow {
  id: string;
  userId: string;
  clientId: string;
  clientName: string;
  redirectUris: string[];
  allowed: { openid?: { scope?: string }; resources?: Record<string, string> };
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date;
}

const grants = (db: Queries) =>
  db
    .selectFrom("oauth_grants as g")
    .innerJoin("oauth_clients as c", "c.id", "g.client_id")
    .select([
      ...(["g.id", "g.user_id as userId", "g.client_id as clientId", "c.name as clientName"] as const),
      ...(["c.redirect_uris as redirectUris", "g.allowed", "g.created_at as createdAt"] as const),
      ...(["g.last_used_at as lastUsedAt", "g.expires_at as expiresAt"] as const),
    ])
    .$castTo<GrantRow>();

export const findGrant = (db: Queries, id: string) => grants(db).where("g.id", "=", id).executeTakeFirst();

export const findActiveGrant = (db: Queries, userId: string, clientId: string, now: Date) =>
  grants(db)
    .where("g.user_id", "=", userId)
    .where("g.client_id", "=", clientId)
    .where("g.expires_at", ">", now)
    .orderBy("g.id", "desc")
    .limit(1)
    .executeTakeFirst();

export async function listActiveGrants(db: Queries, userId: string, now: Date, paging: Paging) {
  const own = grants(db).where("g.user_id", "=", userId).where("g.expires_at", ">", now);
  const items = await own.orderBy("g.id", "desc").limit(paging.limit).offset(offsetOf(paging)).execute();
  const { total } = await own
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export interface NewGrant {
  id: string;
  user_id: string;
  client_id: string;
  allowed: string;
  created_at: Date;
  expires_at: Date;
}

export const upsertGrant = (tx: Queries, grant: NewGrant) =>
  tx
    .insertInto("oauth_grants")
    .values(grant)
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ allowed: grant.allowed, expires_at: grant.expires_at }),
    )
    .execute();

/** undefined: the client was deleted. The lock serialises decisions about it. */
export const lockClient = (tx: Tx, id: string) =>
  tx.selectFrom("oauth_clients").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirst();

export const updateGrantLastUsed = (db: Queries, id: string, now: Date) =>
  db.updateTable("oauth_grants").set({ last_used_at: now }).where("id", "=", id).execute();

/** Its tokens are deleted with it. */
export const deleteGrant = (tx: Queries, id: string) =>
  tx
    .deleteFrom("oauth_grants")
    .where("id", "=", id)
    .returning(["id", "user_id as userId", "client_id as clientId"])
    .executeTakeFirst();

export const deleteOwnGrant = (tx: Queries, userId: string, id: string) =>
  tx
    .deleteFrom("oauth_grants")
    .where("id", "=", id)
    .where("user_id", "=", userId)
    .returning(["id", "client_id as clientId"])
    .executeTakeFirst();

export const deleteGrantsOfUser = (tx: Queries, userId: string) =>
  tx.deleteFrom("oauth_grants").where("user_id", "=", userId).returning("id").execute();

/** Self-registered clients without any grant. */
export const deleteUnusedClients = (db: Queries, registeredBefore: Date) =>
  db
    .deleteFrom("oauth_clients as c")
    .where("c.owner_id", "is", null)
    .where("c.created_at", "<", registeredBefore)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("oauth_grants as g").select("g.id").whereRef("g.client_id", "=", "c.id"))),
    )
    .execute();
