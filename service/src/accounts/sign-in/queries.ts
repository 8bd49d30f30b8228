import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { AttemptWindow } from "./attempts.ts";
import type { OneTimeToken, TokenPurpose } from "./one-time-tokens.ts";

interface NewAttempt {
  kind: string;
  subject: Buffer;
  at: Date;
  windows: AttemptWindow[];
}

const secondsBefore = (at: Date, seconds: number) => new Date(at.getTime() - seconds * 1000);

/**
 * Returns false when a window is full. One statement under the row lock, so that parallel attempts cannot exceed the
 * limit.
 */
export async function addAttempt(db: Queries, { kind, subject, at, windows }: NewAttempt): Promise<boolean> {
  const longest = Math.max(...windows.map(({ seconds }) => seconds));
  const hasRoom = windows.map(
    ({ times, seconds }) =>
      sql`(select count(*) from unnest(a.tried_at) t where t > ${secondsBefore(at, seconds)}) < ${times}`,
  );
  const { rows } = await sql`
    insert into sign_in_attempts as a (kind, subject, tried_at, last_at)
    values (${kind}, ${subject}, array[${at}::timestamptz], ${at})
    on conflict (kind, subject) do update
      set tried_at = array(select t from unnest(a.tried_at) t where t > ${secondsBefore(at, longest)}) || ${at}::timestamptz,
          last_at = ${at}
      where ${sql.join(hasRoom, sql` and `)}
    returning kind`.execute(db);
  return rows.length === 1;
}

interface NewFailure {
  kind: string;
  subject: Buffer;
  at: Date;
  seconds: number;
}

/** Returns the number in the window, this one included. */
export async function addFailure(db: Queries, { kind, subject, at, seconds }: NewFailure): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    insert into sign_in_attempts as a (kind, subject, tried_at, last_at)
    values (${kind}, ${subject}, array[${at}::timestamptz], ${at})
    on conflict (kind, subject) do update
      set tried_at = array(select t from unnest(a.tried_at) t where t > ${secondsBefore(at, seconds)}) || ${at}::timestamptz,
          last_at = ${at}
    returning cardinality(a.tried_at) as count`.execute(db);
  return firstOf(rows).count;
}

export async function listAttempts(db: Queries, kind: string, subject: Buffer): Promise<Date[]> {
  const row = await db
    .selectFrom("signInAttempts")
    .select("triedAt")
    .where("kind", "=", kind)
    .where("subject", "=", subject)
    .executeTakeFirst();
  return (row?.triedAt ?? []) as Date[];
}

/** One entry of that time, not all. */
export const deleteAttempt = (db: Queries, kind: string, subject: Buffer, at: Date) =>
  sql`
    update sign_in_attempts
       set tried_at = tried_at[:array_position(tried_at, ${at}::timestamptz) - 1]
                   || tried_at[array_position(tried_at, ${at}::timestamptz) + 1:]
     where kind = ${kind} and subject = ${subject} and ${at}::timestamptz = any (tried_at)`.execute(db);

export const deleteAttemptsBefore = (db: Queries, moment: Date) =>
  db.deleteFrom("signInAttempts").where("lastAt", "<", moment).execute();

export interface NewToken {
  digest: Buffer;
  purpose: TokenPurpose;
  email: string | null;
  userId: string | null;
  data: string;
  createdAt: Date;
  expiresAt: Date;
}

export const insertToken = (db: Queries, token: NewToken) =>
  db.insertInto("oneTimeTokens").values(token).execute();

const TOKEN_COLUMNS = ["email", "userId", "data"] as const;

export const consumeToken = (db: Queries, digest: Buffer, purposes: TokenPurpose[], now: Date) =>
  db
    .updateTable("oneTimeTokens")
    .set({ usedAt: now })
    .where("digest", "=", digest)
    .where("purpose", "in", purposes)
    .where("usedAt", "is", null)
    .where("expiresAt", ">", now)
    .returning(TOKEN_COLUMNS)
    .$castTo<OneTimeToken>()
    .executeTakeFirst();

export const findActiveToken = (db: Queries, digest: Buffer, purpose: TokenPurpose, now: Date) =>
  db
    .selectFrom("oneTimeTokens")
    .select(TOKEN_COLUMNS)
    .where("digest", "=", digest)
    .where("purpose", "=", purpose)
    .where("usedAt", "is", null)
    .where("expiresAt", ">", now)
    .$castTo<OneTimeToken>()
    .executeTakeFirst();

export const consumeTokensForPurpose = (db: Queries, purpose: TokenPurpose, now: Date) =>
  db
    .updateTable("oneTimeTokens")
    .set({ usedAt: now })
    .where("purpose", "=", purpose)
    .where("usedAt", "is", null)
    .execute();

export const deleteTokensOfUser = (db: Queries, { userId, email }: { userId: string; email: string }) =>
  db
    .deleteFrom("oneTimeTokens")
    .where((row) =>
      row.or([row("userId", "=", userId), row(row.fn("lower", ["email"]), "=", email.toLowerCase())]),
    )
    .execute();

export const deleteTokensBefore = (db: Queries, moment: Date) =>
  db.deleteFrom("oneTimeTokens").where("expiresAt", "<", moment).execute();

export const deleteChallengesOfUser = (db: Queries, userId: string) =>
  db.deleteFrom("oneTimeTokens").where("userId", "=", userId).where("purpose", "=", "two-factor").execute();
