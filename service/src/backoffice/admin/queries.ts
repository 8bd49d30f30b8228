import type { Permission, Plan, Role } from "@stoa/contract";
import type { ExpressionBuilder } from "kysely";
import type { AccountRow } from "../../accounts/people/accounts.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";

export interface UserFilter extends Paging {
  search?: string | undefined;
  /** Of an account whose id was searched for. */
  id?: string | undefined;
  role?: Role | undefined;
  plan?: Plan | undefined;
  status?: "active" | "banned" | "closed" | undefined;
}

type Row = ExpressionBuilder<DB, "users">;

/** Words of a person: in them `%` and `_` are letters. */
const likePattern = (text: string) => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

const hasStatus = (row: Row, status: NonNullable<UserFilter["status"]>) => {
  const isClosed = row("closed_at", "is not", null);
  if (status === "closed") return isClosed;
  const isBanned = row("banned_at", "is not", null);
  return row.and([row.not(isClosed), status === "banned" ? isBanned : row.not(isBanned)]);
};

function matchesFilter(row: Row, { id, search, role, plan, status }: UserFilter) {
  const conditions = [
    ...(id ? [row("id", "=", id)] : []),
    ...(role ? [row("role", "=", role)] : []),
    ...(plan ? [row("plan", "=", plan)] : []),
    ...(status ? [hasStatus(row, status)] : []),
  ];
  if (search && !id) {
    const pattern = likePattern(search);
    conditions.push(row.or([row("email", "ilike", pattern), row("name", "ilike", pattern)]));
  }
  return row.and(conditions);
}

export async function listUsers(db: Queries, filter: UserFilter): Promise<Page<AccountRow>> {
  const found = db.selectFrom("users").where((row) => matchesFilter(row, filter));
  const items = await found
    .select(["id", "email", "name", "bio", "role", "plan", "quota", "verified"])
    .select(["banned_at as bannedAt", "ban_reason as banReason", "closed_at as closedAt"])
    .select(["email_verified_at as emailVerifiedAt", "refund_days as refundDays", "created_at as createdAt"])
    .select(["commission_basis_points as commissionBasisPoints", "country"])
    .orderBy("id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<AccountRow>()
    .execute();
  const { total } = await found
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export interface ClientRow {
  id: string;
  name: string;
  redirectUris: string[];
  postLogoutRedirectUris: string[];
  grantTypes: string[];
  permissions: Permission[] | null;
  ownerId: string | null;
  ownerName: string | null;
  registeredFrom: string | null;
  grants: number;
  createdAt: Date;
}

export interface ClientFilter extends Paging {
  search?: string | undefined;
  /** null: clients that nobody owns. */
  ownerId?: string | null | undefined;
}

function selectClients(db: Queries, { search, ownerId }: ClientFilter) {
  let found = db.selectFrom("oauth_clients as c");
  if (ownerId === null) found = found.where("c.owner_id", "is", null);
  else if (ownerId !== undefined) found = found.where("c.owner_id", "=", ownerId);
  if (!search) return found;
  return found.where((row) =>
    row.or([row("c.id", "=", search), row("c.name", "ilike", likePattern(search))]),
  );
}

export async function listClients(db: Queries, filter: ClientFilter, now: Date): Promise<Page<ClientRow>> {
  const found = selectClients(db, filter);
  const items = await found
    .leftJoin("users as o", "o.id", "c.owner_id")
    .select(["c.id", "c.name", "c.redirect_uris as redirectUris", "c.grant_types as grantTypes"])
    .select(["c.post_logout_redirect_uris as postLogoutRedirectUris", "c.permissions"])
    .select(["c.owner_id as ownerId", "o.name as ownerName", "c.registered_from as registeredFrom"])
    .select(["c.created_at as createdAt"])
    .select((row) =>
      row
        .selectFrom("oauth_grants as g")
        .whereRef("g.client_id", "=", "c.id")
        .where("g.expires_at", ">", now)
        .select((grant) => grant.fn.count<number>("g.user_id").distinct().as("count"))
        .as("grants"),
    )
    .orderBy("c.created_at", "desc")
    .orderBy("c.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<ClientRow>()
    .execute();
  const { total } = await found
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}
