import type { Plan, ProfileLink, Quota, Role } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface NewUser {
  id: string;
  email: string;
  name: string;
  bio: string;
  role: Role;
  plan: string;
  emailVerifiedAt: Date | null;
  verified: boolean;
  passwordHash: string | null;
  demo: boolean;
  createdAt: Date;
}

export const insertUser = (db: Queries, user: NewUser) => db.insertInto("users").values(user).execute();

export const findUserById = (db: Queries, id: string) =>
  db.selectFrom("users").select(["id", "email", "name", "role"]).where("id", "=", id).executeTakeFirst();

export const findUserByEmail = (db: Queries, email: string) =>
  db
    .selectFrom("users")
    .select(["id", "email", "name", "role"])
    .where((row) => row(row.fn("lower", ["email"]), "=", email.toLowerCase()))
    .executeTakeFirst();

/** The rate of a seller's products that have none of their own, in basis points. */
export async function findCommissionRate(db: Queries, id: string): Promise<number> {
  const columns = ["commissionBasisPoints"] as const;
  const user = await db.selectFrom("users").select(columns).where("id", "=", id).executeTakeFirstOrThrow();
  return user.commissionBasisPoints;
}

/** Weak enough that rows which refer to the account can be written meanwhile. */
export const lockPlanOfUser = (db: Queries, id: string) =>
  db
    .selectFrom("users")
    .select("plan")
    .where("id", "=", id)
    .forNoKeyUpdate()
    .$narrowType<{ plan: Plan }>()
    .executeTakeFirstOrThrow();

export const updatePlanOfUser = (db: Queries, id: string, plan: Plan) =>
  db.updateTable("users").set({ plan }).where("id", "=", id).execute();

/** The name of a locked account cannot change while it is copied. */
export const lockAuthorRow = (tx: Tx, id: string) =>
  tx
    .selectFrom("users")
    .select(["id", "name", "verified", "handle", "avatar", "role"])
    .where("id", "=", id)
    .forNoKeyUpdate()
    .$narrowType<{ role: Role }>()
    .executeTakeFirstOrThrow();

export const updateRoleToSeller = (tx: Tx, id: string) =>
  tx.updateTable("users").set({ role: "seller" }).where("id", "=", id).execute();

/** Returns false when the address has an account already. */
export async function insertUserIfNew(db: Queries, user: NewUser): Promise<boolean> {
  const made = await db
    .insertInto("users")
    .values(user)
    .onConflict((conflict) => conflict.expression(sql`lower(email)`).doNothing())
    .returning("id")
    .executeTakeFirst();
  return made !== undefined;
}

/** Neither banned nor closed. */
const signInAccounts = (db: Queries) =>
  db
    .selectFrom("users")
    .select(["id", "email", "name", "emailVerifiedAt", "passwordHash"])
    .where("bannedAt", "is", null)
    .where("closedAt", "is", null);

export const findSignInAccount = (db: Queries, userId: string) =>
  signInAccounts(db).where("id", "=", userId).executeTakeFirst();

export const findSignInAccountByEmail = (db: Queries, email: string) =>
  signInAccounts(db)
    .where((row) => row(row.fn("lower", ["email"]), "=", email.toLowerCase()))
    .executeTakeFirst();

/** A shared lock: ban, password and second factor cannot change until the transaction ends. */
export const lockSignInAccount = (tx: Queries, userId: string) =>
  signInAccounts(tx).where("id", "=", userId).forShare().executeTakeFirst();

export const updateEmailVerified = (db: Queries, userId: string, now: Date) =>
  db
    .updateTable("users")
    .set({ emailVerifiedAt: now, passwordHash: null })
    .where("id", "=", userId)
    .where("emailVerifiedAt", "is", null)
    .returning("id")
    .executeTakeFirst();

export const updatePassword = (db: Queries, userId: string, passwordHash: string) =>
  db.updateTable("users").set({ passwordHash }).where("id", "=", userId).execute();

export async function findPasswordHash(db: Queries, userId: string): Promise<string | null> {
  const user = await db
    .selectFrom("users")
    .select("passwordHash")
    .where("id", "=", userId)
    .executeTakeFirst();
  return user?.passwordHash ?? null;
}

export const findIdentity = (db: Queries, provider: string, subject: string) =>
  db
    .selectFrom("identities")
    .select("userId")
    .where("provider", "=", provider)
    .where("subject", "=", subject)
    .executeTakeFirst();

export const deleteIdentitiesOfUser = (db: Queries, userId: string) =>
  db.deleteFrom("identities").where("userId", "=", userId).execute();

export const deleteIdentitiesOfProvider = (db: Queries, userId: string, provider: string) =>
  db
    .deleteFrom("identities")
    .where("userId", "=", userId)
    .where("provider", "=", provider)
    .returning("subject")
    .execute();

/** By provider, since when. */
export const listIdentities = (db: Queries, userId: string) =>
  db
    .selectFrom("identities")
    .select(["provider", sql<Date>`min(created_at)`.as("linkedAt")])
    .where("userId", "=", userId)
    .groupBy("provider")
    .execute();

/** Unless a parallel request linked it. */
export const insertIdentity = (
  db: Queries,
  identity: { provider: string; subject: string; userId: string; createdAt: Date },
) =>
  db
    .insertInto("identities")
    .values(identity)
    .onConflict((conflict) => conflict.columns(["provider", "subject"]).doNothing())
    .execute();

/** An account without its credentials. */
export interface AccountRow {
  id: string;
  email: string;
  name: string;
  bio: string;
  handle: string | null;
  /** The digest of the picture. */
  avatar: string | null;
  links: ProfileLink[];
  role: Role;
  plan: Plan;
  quota: Quota[] | null;
  emailVerifiedAt: Date | null;
  verified: boolean;
  bannedAt: Date | null;
  banReason: string | null;
  closedAt: Date | null;
  refundDays: 0 | 7 | 14 | 30;
  refundFailedRuns: boolean;
  commissionBasisPoints: number;
  country: string | null;
  createdAt: Date;
}

/** The columns of AccountRow. */
export const accountColumns = [
  "id",
  "email",
  "name",
  "bio",
  "handle",
  "avatar",
  "links",
  "role",
  "plan",
  "quota",
  "verified",
  "bannedAt",
  "banReason",
  "closedAt",
  "emailVerifiedAt",
  "refundDays",
  "refundFailedRuns",
  "commissionBasisPoints",
  "country",
  "createdAt",
] as const;

const accounts = (db: Queries) => db.selectFrom("users").select(accountColumns).$castTo<AccountRow>();

export const findAccount = (db: Queries, id: string) => accounts(db).where("id", "=", id).executeTakeFirst();

/** ISO 3166-1 alpha-2; null: not given. */
export async function findCountry(db: Queries, id: string): Promise<string | null> {
  const user = await db.selectFrom("users").select("country").where("id", "=", id).executeTakeFirst();
  return user?.country ?? null;
}

/** Weak enough that rows which refer to the account can be written meanwhile. */
export const lockAccount = (tx: Tx, id: string) =>
  accounts(tx).where("id", "=", id).forNoKeyUpdate().executeTakeFirst();

/** Waits for running writes of the account and blocks later ones (0014_closing.sql). */
export const waitForWriters = (tx: Tx, id: string) => sql`select lock_account_for_closing(${id})`.execute(tx);

/** Always in order of id, to avoid deadlocks. */
export const lockActiveAdmins = (tx: Tx) =>
  tx
    .selectFrom("users")
    .select("id")
    .where("role", "=", "admin")
    .where("bannedAt", "is", null)
    .where("closedAt", "is", null)
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();

export interface AccountValues {
  name: string;
  email: string;
  bio: string;
  handle: string | null;
  avatar: string | null;
  links: string;
  role: Role;
  quota: string | null;
  verified: boolean;
  passwordHash: null;
  bannedAt: Date | null;
  banReason: string | null;
  closedAt: Date;
  refundDays: number;
  refundFailedRuns: boolean;
  commissionBasisPoints: number;
  country: string | null;
}

export const updateAccount = (tx: Tx, id: string, values: Partial<AccountValues>) =>
  tx.updateTable("users").set(values).where("id", "=", id).execute();

/** Call it after the handle was written: only then a closing of its last owner is visible. */
export async function isHandleRetired(tx: Tx, digest: Buffer): Promise<boolean> {
  const found = await tx
    .selectFrom("retiredHandles")
    .select("digest")
    .where("digest", "=", digest)
    .executeTakeFirst();
  return found !== undefined;
}

export const insertRetiredHandle = (tx: Tx, digest: Buffer) =>
  tx.insertInto("retiredHandles").values({ digest }).execute();

export async function findIdByHandle(db: Queries, handle: string): Promise<string | null> {
  const user = await db.selectFrom("users").select("id").where("handle", "=", handle).executeTakeFirst();
  return user?.id ?? null;
}
