import type { RawBuilder } from "kysely";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import {
  CallProgress,
  estimateAbandonedUsage,
  type Message,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { type AnswerLimits, priceOfCall } from "./call-price.ts";
import { type Cost, costOf } from "./cost.ts";
import { record } from "./durable-write.ts";
import { monthOf } from "./month-cost.ts";
import { type SealedKey, toUsable } from "./provider-keys.ts";
import {
  type CallEnd,
  endCallAlone,
  forgetCallsBefore,
  type KeyRefusal,
  type LateRefusal,
  movingCalls,
  type Reservation,
  type Reserved,
  reserveCallAlone,
  reservedCalls,
} from "./queries.ts";

/** Renewed as long as the process lives (leases.ts): a call may take half an hour. */
export const LEASE_MS = 90_000;
/** Budgets count one month; the one before may still be looked at. */
const CALLS_KEPT_DAYS = 62;

/** A call that takes its part of its key's limits until it is ended. */
export interface OpenCall {
  reservation: Reservation;
  key: SealedKey;
  /** What is left of the budget pays for an answer of so many; undefined: no budget limits it, or not known yet. */
  maxTokens?: number | undefined;
}

export interface CallWish {
  /** Whose part it is. */
  executionId: string;
  model: string;
  messages: readonly Message[];
  options: AnswerLimits;
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
    price: key.monthlyBudgetUsd === null ? null : priceOfCall({ ...wish, provider: key.provider, at: now }),
    startedAt: now,
    monthStart: monthOf(now),
    leaseUntil: new Date(now.getTime() + LEASE_MS),
  };
  return { reservation, key };
}

const RESERVED =
  "What is left of the stored key's monthly budget is reserved by calls under way. Wait until one has ended, lower maxTokens, or raise monthlyBudget.";

/** Throws KEY_BUDGET_EXCEEDED, KEY_CONCURRENCY_LIMIT or PROVIDER_KEY_NOT_FOUND where something stands against a call. */
export function mustBeWithinLimits(refusedBy: KeyRefusal | undefined): void {
  if (refusedBy === undefined) return;
  const details = { source: "marketplace" };
  if (refusedBy === "reserved")
    throw new ApiError("KEY_BUDGET_EXCEEDED", RESERVED, { ...details, reason: "reserved" }, 1);
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
  return cause instanceof ProviderError && cause.code === "PROVIDER_KEY_INVALID" ? "invalid" : null;
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
  reserved: reservedCalls,
});

const toOpening = ({ reservation, key: { sealedKey, status, monthlyBudgetUsd } }: OpenCall) => ({
  reservation,
  key: { sealedKey, status, hasBudget: monthlyBudgetUsd !== null },
});

export type { CallEnd, LateRefusal, Reserved };

export type KeyedCall = CallWish &
  Pick<ProviderCall, "options" | "signal" | "timeoutMs" | "versionId" | "sample"> & { key: SealedKey };

/** Takes its part of the key's limits for a call that stands in no other statement. Throws what `mustBeWithinLimits` does. */
export async function openCall(ctx: Context, key: SealedKey, wish: CallWish): Promise<OpenCall | null> {
  const call = toOpenCall(ctx, key, wish);
  return call && withReserved(call, await reserveCallAlone(ctx.db, call.reservation));
}

/** The call with what it was given of its key's limits. Throws what `mustBeWithinLimits` does. */
export function withReserved(call: OpenCall, { refusedBy, maxTokens }: Reserved): OpenCall {
  mustBeWithinLimits(refusedBy);
  return { ...call, maxTokens: maxTokens ?? undefined };
}

/** `usage`: what the call has used although it gave no answer; null: nothing that anybody bills. */
type Failed = { cause: unknown; usage: TokenUsage | null };

/** What came of a call; `end` is what its key is still to be told, null where it has no limits. */
export type Made = ({ answer: ProviderAnswer; cost: Cost } | Failed) & { end: CallEnd | null };

/**
 * What a call that gave no answer has used: by the provider's count, else by our estimate where it was abandoned once the
 * provider had it (its caller went, its time was over), or broke off after the model had begun to write. null: nothing.
 */
export function usageOfFailed(
  cause: unknown,
  messages: readonly Message[],
  progress: CallProgress,
): TokenUsage | null {
  if (!(cause instanceof ProviderError))
    return progress.isSent ? estimateAbandonedUsage(messages, progress) : null;
  const { code, info: facts } = cause;
  if (facts.usage) return facts.usage;
  const isTimeout = code === "PROVIDER_TIMEOUT" && facts.phase !== "connect" && progress.isSent;
  const isGivenUp = code === "SERVICE_UNAVAILABLE" && progress.isSent;
  return isTimeout || isGivenUp || progress.outputBytes > 0
    ? estimateAbandonedUsage(messages, progress)
    : null;
}

/**
 * Makes a call that was opened, as a part of an execution: priced, and with what it showed of the key. Whoever makes it has `end`
 * written down, and calls `releaseCall` then: until that its lease is renewed. Not in a transaction.
 */
export async function makeCall(
  ctx: Context,
  call: OpenCall | null,
  { key, executionId: _, ...wish }: KeyedCall,
): Promise<Made> {
  const { provider, baseUrl } = key;
  const progress = new CallProgress();
  hold(ctx, call);
  const priceOf = (model: string, usage: ProviderAnswer["usage"]) =>
    costOf({ provider, model, askedModel: wish.model, usage, at: ctx.now() });
  try {
    const answer = await ctx.integrations.ai.run({
      ...{ provider, baseUrl, apiKey: toUsable(ctx, key).secret },
      ...{ ...wish, progress, options: { ...wish.options, capTokens: call?.maxTokens } },
    });
    const cost = priceOf(answer.model, answer.usage);
    return { answer, cost, end: toCallEnd(ctx, call, { cost }) };
  } catch (cause) {
    const usage = usageOfFailed(cause, wish.messages, progress);
    const cost = usage && priceOf(wish.model, usage);
    return { cause, usage, end: toCallEnd(ctx, call, { cause, cost }) };
  }
}

/** Has a call's lease renewed until what is answered is called. */
export function hold({ live }: Context, call: OpenCall | null): () => void {
  if (!call) return () => {};
  const { callId } = call.reservation;
  live.callIds.add(callId);
  return () => void live.callIds.delete(callId);
}

/** Its end is written down: the lease that it had is renewed no more. */
export const releaseCall = ({ live }: Context, { callId }: CallEnd): void => void live.callIds.delete(callId);

/** The provider was called, perhaps billed: a row that cannot be written must not lose the answer. */
export async function endCall(ctx: Context, end: CallEnd): Promise<void> {
  let written: Promise<unknown> = Promise.resolve();
  await record(
    ctx,
    { call: end.callId },
    () => endCallAlone(ctx.db, end),
    (later) => {
      written = later;
    },
  );
  void written.then(() => releaseCall(ctx, end));
}

export async function forgetOldCalls(ctx: Context): Promise<void> {
  await forgetCallsBefore(ctx.db, daysAfter(ctx.now(), -CALLS_KEPT_DAYS));
}
