import { randomBytes } from "node:crypto";
import { type CreateOAuthClient, type NewOAuthClient, type OAuthClient, permissions } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import type { Email } from "../../platform/email/render-email.ts";
import type { DataOf } from "../notifications/kinds.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { generateClientId, isClientId } from "./client-id.ts";
import { clientCreatedEmail, clientSecretRotatedEmail } from "./emails.ts";
import {
  type ClientRow,
  countOwnClients,
  deleteOwnClient,
  findOwnClient,
  insertOwnClient,
  listOwnClients,
  lockAccount,
  replaceSecret,
} from "./queries.ts";

const MAX_CLIENTS_PER_ACCOUNT = 25;

const generateClientSecret = () => `stoa_client_${randomBytes(32).toString("base64url")}`;
const notFound = () => new ApiError("OAUTH_CLIENT_NOT_FOUND");

export const toClient = (client: Omit<ClientRow, "secretDigest" | "idTokenAlgorithm">): OAuthClient => ({
  clientId: client.id,
  name: client.name,
  redirectUris: client.redirectUris,
  postLogoutRedirectUris: client.postLogoutRedirectUris,
  grantTypes: client.grantTypes,
  scopes: client.permissions ?? [...permissions],
  createdAt: client.createdAt.toISOString(),
});

export async function listClients(ctx: Context, caller: SessionCaller, query: Paging) {
  return mapPage(await listOwnClients(ctx.db, caller.userId, query), toClient);
}

export async function createClient(
  ctx: Context,
  caller: SessionCaller,
  input: CreateOAuthClient,
  source: RequestSource,
): Promise<NewOAuthClient> {
  if (input.grantTypes.includes("authorization_code") && input.redirectUris.length === 0)
    throw invalidRequest("redirectUris", "must have at least one for authorization_code");
  const id = generateClientId();
  const secret = generateClientSecret();
  return ctx.db.transaction().execute(async (tx) => {
    await mustBeBelowClientLimit(tx, caller.userId);
    await insertOwnClient(tx, {
      id,
      ownerId: caller.userId,
      name: input.name,
      redirectUris: input.redirectUris,
      postLogoutRedirectUris: input.postLogoutRedirectUris,
      grantTypes: input.grantTypes,
      permissions: input.scopes,
      secretDigest: digestOf(secret),
      createdAt: ctx.now(),
    });
    await ctx.idempotencyKey?.bind(tx, id);
    const { name, redirectUris, grantTypes, scopes } = input;
    await auditClientAction(ctx, tx, caller, source, "created", id, {
      name,
      redirectUris,
      grantTypes,
      scopes,
    });
    const actsAlone = grantTypes.includes("client_credentials");
    const message = clientCreatedEmail(ctx, { name, actsAlone });
    await notifyOwner(ctx, tx, caller, id, { change: "created", name }, message);
    return toNewClient(secret, await findOwnClient(tx, caller.userId, id));
  });
}

async function mustBeBelowClientLimit(tx: Tx, userId: string): Promise<void> {
  await lockAccount(tx, userId);
  if ((await countOwnClients(tx, userId)) >= MAX_CLIENTS_PER_ACCOUNT)
    throw new ApiError(
      "CONFLICT",
      `An account has at most ${MAX_CLIENTS_PER_ACCOUNT} OAuth clients; remove one first.`,
    );
}

function toNewClient(clientSecret: string, client: ClientRow | undefined): NewOAuthClient {
  if (!client) throw notFound();
  return { ...toClient(client), clientSecret };
}

/** The old secret ends at once, since a rotation mostly follows a leak. */
export async function rotateClientSecret(
  ctx: Context,
  caller: SessionCaller,
  clientId: string,
  source: RequestSource,
) {
  if (!isClientId(clientId)) throw notFound();
  const secret = generateClientSecret();
  return ctx.db.transaction().execute(async (tx) => {
    if (!(await replaceSecret(tx, caller.userId, clientId, digestOf(secret)))) throw notFound();
    await ctx.idempotencyKey?.bind(tx, clientId);
    await auditClientAction(ctx, tx, caller, source, "secret_rotated", clientId);
    const client = await findOwnClient(tx, caller.userId, clientId);
    if (client) {
      const data = { change: "secret" as const, name: client.name };
      await notifyOwner(ctx, tx, caller, clientId, data, clientSecretRotatedEmail(ctx, client));
    }
    return toNewClient(secret, client);
  });
}

function notifyOwner(
  ctx: Context,
  tx: Queries,
  { userId }: SessionCaller,
  clientId: string,
  data: DataOf<"oauth_client.changed">,
  message: Email,
): Promise<void> {
  const about = { userId, subjectId: clientId, occurrence: ctx.newId() };
  return notifyAccount(ctx, tx, { ...about, kind: "oauth_client.changed", data }, message);
}

/** Deletes its grants and tokens, too. */
export async function deleteClient(
  ctx: Context,
  caller: SessionCaller,
  clientId: string,
  source: RequestSource,
) {
  if (!isClientId(clientId)) throw notFound();
  return ctx.db.transaction().execute(async (tx) => {
    const client = await deleteOwnClient(tx, caller.userId, clientId);
    if (!client) throw notFound();
    await auditClientAction(ctx, tx, caller, source, "removed", clientId, { name: client.name });
    return { clientId, deleted: true as const };
  });
}

const auditClientAction = (
  ctx: Context,
  tx: Tx,
  { userId }: SessionCaller,
  source: RequestSource,
  verb: "created" | "secret_rotated" | "removed",
  id: string,
  details: Record<string, unknown> = {},
) =>
  recordAudit(ctx, tx, {
    actorId: userId,
    action: `oauth_client.${verb}`,
    target: { type: "oauth_client", id },
    source,
    details,
  });
