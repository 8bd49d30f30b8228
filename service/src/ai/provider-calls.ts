import type { RawBuilder } from "kysely";
import type { Context } from "../context.ts";
import { daysAfter } from "../days.ts";
import { ApiError } from "../errors.ts";
import {
  type Message,
  type ProviderAnswer,
  type ProviderCall,
  ProviderFault,
} from "../outside/ai-provider.ts";
import { type Cost, costOf, expectedCostOf } from "./cost.ts";
import {
  type CallEnd,
  endCallAlone,
  forgetCallsBefore,
  type KeyRefusal,
  type LateRefusal,
  movingCalls,
  type Reservation,
  refusalsOfCalls,
  reserveCallAlone,
} from "./key-queries.ts";
import { type SealedKey, toUsable } from "./provider-keys.ts";
import { record } from "./recording.ts";
import { monthOf } from "./spent.ts";

/** Past the last deadline of any call: whoever holds such a lease is dead. */
export const LEASE_MS = 180_000;
/** Budgets count one month; the one before may still be looked at. */
const CALLS_KEPT_DAYS = 62;

/** A call that takes its part of its key's limits until it is ended. */
export interface OpenCall {
  reservation: Reservation;
  key: SealedKey;
}

export interface CallWish {
  /** Whose part it is. */
  executionId: string;
  model: string;
  messages: readonly Message[];
  options: { maxTokens?: number | undefined };
}

/** What a call takes of its key's limits; the sandbox has neither. Nothing is written yet. */
export function toOpenCall(ctx: Context, key: SealedKey, wish: CallWish): OpenCall | null {
  if (key.id === null) return null;
  const now = ctx.now();
  const reservation = {
    callId: ctx.newId(),
    providerKeyId: key.id,
    executionId: wish.executionId,
    // Only a budget asks, and looking a price up takes longer than all the rest.
    expectedUsd:
      key.monthlyBudgetUsd === null ? 0 : expectedCostOf({ ...wish, provider: key.provider, at: now }),
    startedAt: now,
    monthStart: monthOf(now),
    leaseUntil: new Date(now.getTime() + LEASE_MS),
  };
  return { reservation, key };
}

/** Throws KEY_BUDGET_EXCEEDED, KEY_CONCURRENCY_LIMIT or PROVIDER_KEY_NOT_FOUND where something stands against a call. */
export function mustBeWithinLimits(refusedBy: KeyRefusal | null): void {
  if (refusedBy === null) return;
  const details = { source: "marketplace" };
  if (refusedBy === "forgotten") throw new ApiError("PROVIDER_KEY_NOT_FOUND", undefined, details);
  if (refusedBy === "concurrency") throw new ApiError("KEY_CONCURRENCY_LIMIT", undefined, details, 1);
  throw new ApiError("KEY_BUDGET_EXCEEDED", undefined, details);
}

/** How a call ended: what the provider counted, or failed with. */
export type CallOutcome = { cost: Cost } | { cause: unknown; cost: Cost | null };

/** A key that works is valid whatever was thought of it, and one that is refused is not. */
function verdictOf(key: SealedKey, outcome: CallOutcome): CallEnd["verdict"] {
  if (!("cause" in outcome)) return key.status === "valid" ? null : "valid";
  const { cause } = outcome;
  return cause instanceof ProviderFault && cause.code === "PROVIDER_KEY_INVALID" ? "invalid" : null;
}

export function toCallEnd(ctx: Context, call: OpenCall | null, outcome: CallOutcome): CallEnd | null {
  if (!call) return null;
  const { providerKeyId, callId } = call.reservation;
  return {
    callId,
    key: { id: providerKeyId, sealedKey: call.key.sealedKey },
    costUsd: outcome.cost?.estimatedCost ?? 0,
    verdict: verdictOf(call.key, outcome),
    endedAt: ctx.now(),
  };
}

/** Parts of the statement of a room that makes many calls (`with …`), and a column that tells what stands against those that open. */
export const movingCallsOf = (
  { ended, opened }: { ended: readonly CallEnd[]; opened: readonly OpenCall[] },
  condition: RawBuilder<unknown>,
) => ({
  parts: movingCalls(ended, opened.map(toOpening), condition),
  refusals: refusalsOfCalls,
});

const toOpening = ({ reservation, key: { sealedKey, status, monthlyBudgetUsd } }: OpenCall) => ({
  reservation,
  key: { sealedKey, status, hasBudget: monthlyBudgetUsd !== null },
});

export type { CallEnd, LateRefusal };

export type KeyedCall = CallWish &
  Pick<ProviderCall, "options" | "signal" | "versionId" | "sample"> & { key: SealedKey };

/** Takes its part of the key's limits for a call that stands in no other statement. Throws what `mustBeWithinLimits` does. */
export async function openCall(ctx: Context, key: SealedKey, wish: CallWish): Promise<OpenCall | null> {
  const call = toOpenCall(ctx, key, wish);
  if (call) mustBeWithinLimits(await reserveCallAlone(ctx.db, call.reservation));
  return call;
}

/** What came of a call; `end` is what its key is still to be told, null where it has no limits. */
export type Made = ({ answer: ProviderAnswer; cost: Cost } | { cause: unknown }) & { end: CallEnd | null };

/**
 * Makes a call that was opened, as a part of an execution: priced, and with what it showed of the key. Whoever makes it has `end`
 * written down. Not in a transaction.
 */
export async function makeCall(
  ctx: Context,
  call: OpenCall | null,
  { key, executionId: _, ...wish }: KeyedCall,
): Promise<Made> {
  const { provider, baseUrl } = key;
  const priceOf = (model: string, usage: ProviderAnswer["usage"]) =>
    costOf({ provider, model, askedModel: wish.model, usage, at: ctx.now() });
  try {
    const answer = await ctx.outside.ai.run({
      ...{ provider, baseUrl, apiKey: toUsable(ctx, key).secret },
      ...wish,
    });
    const cost = priceOf(answer.model, answer.usage);
    return { answer, cost, end: toCallEnd(ctx, call, { cost }) };
  } catch (cause) {
    const counted = cause instanceof ProviderFault ? cause.facts.usage : undefined;
    const cost = counted ? priceOf(wish.model, counted) : null;
    return { cause, end: toCallEnd(ctx, call, { cause, cost }) };
  }
}

/** The provider was called, perhaps billed: a row that cannot be written must not lose the answer. */
export const endCall = (ctx: Context, end: CallEnd): Promise<void> =>
  record(ctx, { call: end.callId }, () => endCallAlone(ctx.db, end));

export async function forgetOldCalls(ctx: Context): Promise<void> {
  await forgetCallsBefore(ctx.db, daysAfter(ctx.now(), -CALLS_KEPT_DAYS));
}
