import type { AdminOAuthClient } from "@stoa/contract";
import { toClient } from "../../accounts/oauth/clients.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { EMPTY_PAGE, mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { type ClientRow, listClients } from "./queries.ts";

const toAdminClient = (client: ClientRow): AdminOAuthClient => ({
  ...toClient(client),
  owner:
    client.ownerId === null
      ? null
      : { id: toUserId(client.ownerId), name: required(client.ownerName, "the name of an owner") },
  registeredFrom: client.registeredFrom,
  grants: client.grants,
});

interface ClientQuery extends Paging {
  search?: string | undefined;
  owner?: string | undefined;
}

/** Includes self-registered clients. */
export async function listOAuthClients(ctx: Context, query: ClientQuery): Promise<Page<AdminOAuthClient>> {
  const { owner, ...rest } = query;
  if (owner === undefined) return mapPage(await listClients(ctx.db, rest, ctx.now()), toAdminClient);
  const ownerId = owner === "none" ? null : toUuid("usr", owner);
  if (ownerId === null && owner !== "none") return EMPTY_PAGE;
  return mapPage(await listClients(ctx.db, { ...rest, ownerId }, ctx.now()), toAdminClient);
}
