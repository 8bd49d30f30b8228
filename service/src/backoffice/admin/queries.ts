import type { Permission, Plan, Role } from "@stoa/contract";
import type { ExpressionBuilder } from "kysely";
import { type AccountRow, accountColumns } from "../../accounts/people/accounts.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";

export interface UserFilter extends Paging {
  search?: string | undefined;
  /** Set when the search text is a user id. */
  id?: string | undefined;
  role?: Role | undefined;
  plan?: Plan | undefined;
  status?: "active" | "banned" | "closed" | undefined;
}

type Row = ExpressionBuilder<DB, "users">;

/** Escapes `%` and `_`. */
const likePattern = (text: string) => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

const hasStatus = (row: Row, status: NonNullable<UserFilter["status"]>) => {
  const isClosed = row("closedAt", "is not", null);
  if (status === "closed") return isClosed;
  const isBanned = row("bannedAt", "is not", null);
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
    .select(accountColumns)
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
  /** null: clients without an owner. */
  ownerId?: string | null | undefined;
}

function selectClients(db: Queries, { search, ownerId }: ClientFilter) {
  let found = db.selectFrom("oauthClients as c");
  if (ownerId === null) found = found.where("c.ownerId", "is", null);
  else if (ownerId !== undefined) found = found.where("c.ownerId", "=", ownerId);
  if (!search) return found;
  return found.where((row) =>
    row.or([row("c.id", "=", search), row("c.name", "ilike", likePattern(search))]),
  );
}

export async function listClients(db: Queries, filter: ClientFilter, now: Date): Promise<Page<ClientRow>> {
  const found = selectClients(db, filter);
  const items = await found
    .leftJoin("users as o", "o.id", "c.ownerId")
    .select([
      "c.id",
      "c.name",
      "c.redirectUris",
      "c.grantTypes",
      "c.postLogoutRedirectUris",
      "c.permissions",
      "c.ownerId",
      "o.name as ownerName",
      "c.registeredFrom",
      "c.createdAt",
    ])
    .select((row) =>
      row
        .selectFrom("oauthGrants as g")
        .whereRef("g.clientId", "=", "c.id")
        .where("g.expiresAt", ">", now)
        .select((grant) => grant.fn.count<number>("g.userId").distinct().as("count"))
        .as("grants"),
    )
    .orderBy("c.createdAt", "desc")
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
