import type { Context, KeyCaller } from "../../core/context.ts";
import { digestOf, isSameDigest } from "../../core/digest.ts";
import { parseKeyLookup } from "./api-key.ts";
import { findKey, type KeyRow, updateKeyLastUsed } from "./queries.ts";

const LAST_USED_INTERVAL_MS = 60_000;
/** Compared when no key is found, so that a miss takes as long as a hit. */
const DUMMY_DIGEST = digestOf("");

const isExpired = (key: KeyRow, now: Date) => key.expiresAt !== null && key.expiresAt <= now;

/** null: the key is unknown, revoked, expired or of the other environment. */
export async function authenticateApiKey(ctx: Context, value: string): Promise<KeyCaller | null> {
  const lookup = parseKeyLookup(value, ctx.config.environment);
  if (!lookup) return null;
  const key = await ctx.keyCache.find(lookup, () => findKey(ctx, lookup));
  const matches = isSameDigest(digestOf(value), key?.digest ?? DUMMY_DIGEST);
  if (!key || !matches || isExpired(key, ctx.now())) return null;
  updateLastUsed(ctx, key);
  return {
    kind: "key",
    keyId: key.id,
    userId: key.userId,
    role: key.role,
    plan: key.plan,
    quota: key.quota,
    permissions: key.permissions,
  };
}

/** At most once a minute, and the request does not wait for it. */
function updateLastUsed(ctx: Context, key: KeyRow): void {
  const now = ctx.now();
  const before = new Date(now.getTime() - LAST_USED_INTERVAL_MS);
  if (key.lastUsedAt && key.lastUsedAt > before) return;
  // In the cached row, too, so that the next request does not write.
  key.lastUsedAt = now;
  updateKeyLastUsed(ctx, key.id, now, before).catch((error) =>
    ctx.log.warn({ err: error }, "the last use of an API key was not stored"),
  );
}
