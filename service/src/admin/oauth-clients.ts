import { type AdminOAuthClient, permissions } from "@stoa/contract";
import type { Context } from "../context.ts";
import { mapPage, type Page, type Paging } from "../db/paging.ts";
import { toUuid } from "../ids.ts";
import { toUserId } from "../people/users.ts";
import { type ClientRow, listClients } from "./queries.ts";

const toClient = (client: ClientRow): AdminOAuthClient => ({
  clientId: client.id,
  name: client.name,
  redirectUris: client.redirectUris,
  postLogoutRedirectUris: client.postLogoutRedirectUris,
  grantTypes: client.grantTypes,
  scopes: client.permissions ?? [...permissions],
  owner: client.ownerId === null ? null : { id: toUserId(client.ownerId), name: client.ownerName! },
  registeredFrom: client.registeredFrom,
  grants: client.grants,
  createdAt: client.createdAt.toISOString(),
});

interface ClientQuery extends Paging {
  search?: string | undefined;
  owner?: string | undefined;
}

/** Everybody's applications, those that registered themselves too. */
export async function listOAuthClients(ctx: Context, query: ClientQuery): Promise<Page<AdminOAuthClient>> {
  const { owner, ...rest } = query;
  if (owner === undefined) return mapPage(await listClients(ctx.db, rest, ctx.now()), toClient);
  const ownerId = owner === "none" ? null : toUuid("usr", owner);
  if (ownerId === null && owner !== "none") return { items: [], total: 0 };
  return mapPage(await listClients(ctx.db, { ...rest, ownerId }, ctx.now()), toClient);
}
