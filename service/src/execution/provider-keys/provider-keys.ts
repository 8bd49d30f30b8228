import type { CreateProviderKey, ProviderKey, UpdateProviderKey } from "@stoa/contract";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { KeyStatus } from "../../integrations/ai-providers/ai-provider.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { countMonthCost } from "./month-cost.ts";
import {
  countKeys,
  eraseKey,
  findKey,
  insertKey,
  type KeyRow,
  listKeys,
  updateKey,
  updateKeyStatus,
} from "./queries.ts";

const MAX_KEYS = 100;

/** Their servers are at an address of the owner; the other providers have one address. */
const WITH_BASE_URL = new Set(["openai-compatible", "ollama"]);

/** Binds a sealed key to its owner and row: copied to another, it does not open. */
const sealContext = (userId: string, id: string) => `provider-key|${userId}|${id}`;

export const sealedKeys = sealedColumn({
  table: "provider_keys",
  column: "sealed_key",
  key: { id: "uuid" },
  bound: { userId: "t.user_id", id: "t.id" },
  contextOf: ({ userId, id }) => sealContext(userId, id),
});

function mustHaveValidBaseUrl(ctx: Context, provider: string, baseUrl: string | undefined): void {
  if (baseUrl === undefined) {
    if (provider !== "openai-compatible") return;
    throw invalidRequest("baseUrl", "is required for openai-compatible");
  }
  if (!WITH_BASE_URL.has(provider))
    throw invalidRequest("baseUrl", "is only for openai-compatible and ollama");
  const problem = ctx.integrations.findUrlProblem(baseUrl);
  if (problem) throw invalidRequest("baseUrl", problem);
}

function toProviderKey(key: KeyRow): ProviderKey {
  return {
    id: toId("pkey", key.id),
    provider: key.provider,
    name: key.name,
    last4: key.last4,
    baseUrl: key.baseUrl,
    status: key.status,
    monthlyBudget: key.monthlyBudgetUsd === null ? null : Number(key.monthlyBudgetUsd),
    maxConcurrency: key.maxConcurrency,
    createdAt: key.createdAt.toISOString(),
    lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
  };
}

/** The only readable part of a key. Short keys show nothing, because four characters would reveal too much. */
const last4Of = (key: string) => (key.length >= 12 ? key.slice(-4) : "");

async function mustFindKey(ctx: Context, caller: Member, providerKeyId: string): Promise<KeyRow> {
  const id = toUuid("pkey", providerKeyId);
  const key = id ? await findKey(ctx.db, caller.userId, id) : undefined;
  if (!key) throw new ApiError("PROVIDER_KEY_NOT_FOUND", undefined, { source: "marketplace" });
  return key;
}

/** Reads the key again, because it may have been deleted meanwhile. */
async function readKey(ctx: Context, caller: Member, id: string): Promise<ProviderKey> {
  const key = await findKey(ctx.db, caller.userId, id);
  if (!key) throw new ApiError("PROVIDER_KEY_NOT_FOUND");
  return toProviderKey(key);
}

/** The audit log records each change of a stored secret, without the secret. */
const auditKeyChange = (
  ctx: Context,
  tx: Tx,
  { userId }: Member,
  source: RequestSource,
  change: string,
  id: string,
) =>
  recordAudit(ctx, tx, {
    actorId: userId,
    action: `provider_key.${change}`,
    target: { type: "provider_key", id: toId("pkey", id) },
    source,
  });

export async function storeKey(
  ctx: Context,
  caller: Member,
  input: CreateProviderKey,
  source: RequestSource,
): Promise<ProviderKey> {
  mustHaveValidBaseUrl(ctx, input.provider, input.baseUrl);
  const id = ctx.newId();
  await ctx.db.transaction().execute(async (tx) => {
    if ((await countKeys(tx, caller.userId)) >= MAX_KEYS) throw tooManyKeys();
    await insertKey(tx, {
      id,
      userId: caller.userId,
      provider: input.provider,
      name: input.name,
      sealedKey: ctx.vault.seal(input.key, sealContext(caller.userId, id)),
      last4: last4Of(input.key),
      baseUrl: input.baseUrl ?? null,
      status: "unverified",
      monthlyBudgetUsd: input.monthlyBudget ?? null,
      maxConcurrency: input.maxConcurrency ?? null,
      createdAt: ctx.now(),
    });
    await auditKeyChange(ctx, tx, caller, source, "stored", id);
    await ctx.idempotencyKey?.bind(tx, toId("pkey", id));
  });
  return verifyIfPossible(ctx, caller, id);
}

/** For a repeated Idempotency-Key: returns the stored key, and verifies it if that has not happened. */
export async function resumeKey(ctx: Context, caller: Member, providerKeyId: string): Promise<ProviderKey> {
  const { id, status } = await mustFindKey(ctx, caller, providerKeyId);
  return status === "unverified" ? verifyIfPossible(ctx, caller, id) : readKey(ctx, caller, id);
}

const tooManyKeys = () =>
  new ApiError(
    "VALIDATION_ERROR",
    `An account may have ${MAX_KEYS} provider keys. Remove one that nothing uses.`,
    { limit: MAX_KEYS },
  );

export async function listOwnKeys(ctx: Context, caller: Member, query: Paging) {
  return mapPage(await listKeys(ctx.db, caller.userId, query), toProviderKey);
}

export async function changeKey(
  ctx: Context,
  caller: Member,
  providerKeyId: string,
  change: UpdateProviderKey,
  source: RequestSource,
) {
  const key = await mustFindKey(ctx, caller, providerKeyId);
  if (change.baseUrl !== undefined) mustHaveValidBaseUrl(ctx, key.provider, change.baseUrl);
  // Otherwise a caller with the right to change settings could send a stored secret to another address.
  if (change.baseUrl !== undefined && change.baseUrl !== key.baseUrl && change.key === undefined) {
    throw invalidRequest("key", "is required when baseUrl changes");
  }
  const values = {
    ...(change.name !== undefined && { name: change.name }),
    ...(change.baseUrl !== undefined && { baseUrl: change.baseUrl }),
    ...(change.monthlyBudget !== undefined && { monthlyBudgetUsd: change.monthlyBudget }),
    ...(change.maxConcurrency !== undefined && { maxConcurrency: change.maxConcurrency }),
    ...(change.key !== undefined && {
      sealedKey: ctx.vault.seal(change.key, sealContext(caller.userId, key.id)),
      last4: last4Of(change.key),
      status: "unverified" as const,
    }),
  };
  if (key.monthlyBudgetUsd === null && values.monthlyBudgetUsd) await countMonthCost(ctx, key.id);
  if (Object.keys(values).length > 0)
    await ctx.db.transaction().execute(async (tx) => {
      await updateKey(tx, key.id, values);
      if (change.key !== undefined) await auditKeyChange(ctx, tx, caller, source, "replaced", key.id);
    });
  return change.key === undefined ? readKey(ctx, caller, key.id) : verifyIfPossible(ctx, caller, key.id);
}

export async function deleteKey(ctx: Context, caller: Member, providerKeyId: string, source: RequestSource) {
  const key = await mustFindKey(ctx, caller, providerKeyId);
  await ctx.db.transaction().execute(async (tx) => {
    await eraseKey(tx, key.id, ctx.now());
    await auditKeyChange(ctx, tx, caller, source, "removed", key.id);
  });
  return { id: toId("pkey", key.id), deleted: true as const };
}

/** Verifies the key with its provider and stores the result. Throws PROVIDER_ERROR if the provider is unreachable. */
export async function verifyKey(ctx: Context, caller: Member, providerKeyId: string): Promise<ProviderKey> {
  const key = await mustFindKey(ctx, caller, providerKeyId);
  if ((await checkWithProvider(ctx, key)) === "unreachable") {
    throw new ApiError(
      "PROVIDER_ERROR",
      "The provider could not be reached, so nothing is known about the key.",
      {
        source: "provider",
        provider: key.provider,
      },
    );
  }
  return readKey(ctx, caller, key.id);
}

/** A new secret is stored whatever the provider answers, and even if it does not answer in time. */
async function verifyIfPossible(ctx: Context, caller: Member, id: string): Promise<ProviderKey> {
  const key = await findKey(ctx.db, caller.userId, id);
  if (key) await checkWithProvider(ctx, key).catch(ignoreShutdown(ctx));
  return readKey(ctx, caller, id);
}

function ignoreShutdown({ shutdown }: Context) {
  return (error: unknown) => {
    if (!shutdown.aborted) throw error;
  };
}

async function checkWithProvider(ctx: Context, key: KeyRow): Promise<KeyStatus> {
  const result = await ctx.integrations.ai.verify(
    { provider: key.provider, apiKey: openKey(ctx, key), baseUrl: key.baseUrl },
    ctx.shutdown,
  );
  if (result !== "unreachable") await updateKeyStatus(ctx.db, key, result);
  return result;
}

const openKey = (ctx: Context, key: Pick<KeyRow, "id" | "userId" | "sealedKey">) =>
  ctx.vault.open(key.sealedKey, sealContext(key.userId, key.id));

export type SealedKey = Pick<
  KeyRow,
  "userId" | "provider" | "baseUrl" | "sealedKey" | "status" | "monthlyBudgetUsd" | "maxConcurrency"
> & {
  /** null: the sandbox. */
  id: string | null;
};

export type UsableKey = SealedKey & { secret: string };

const toSandboxKey = (userId: string): SealedKey => ({
  ...{ id: null, userId, provider: "sandbox", baseUrl: null, sealedKey: "", status: "valid" },
  monthlyBudgetUsd: null,
  maxConcurrency: null,
});

/** The key to run with: a stored one of the caller's, or the built-in `sandbox` where the operator allows it. */
export async function findRunKey(ctx: Context, caller: Member, apiKeyId: string): Promise<SealedKey> {
  if (apiKeyId === "sandbox" && ctx.config.sandbox) return toSandboxKey(caller.userId);
  return mustFindKey(ctx, caller, apiKeyId);
}

export const toUsableKey = (ctx: Context, key: SealedKey): UsableKey => ({
  ...key,
  secret: key.id === null ? "" : openKey(ctx, { ...key, id: key.id }),
});

export const findUsableKey = async (ctx: Context, caller: Member, apiKeyId: string): Promise<UsableKey> =>
  toUsableKey(ctx, await findRunKey(ctx, caller, apiKeyId));
