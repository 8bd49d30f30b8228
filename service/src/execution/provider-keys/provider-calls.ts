import { type RawBuilder, sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import {
  type AiProviders,
  CallProgress,
  type EmbeddingAnswer,
  estimateAbandonedUsage,
  type Message,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { type AnswerLimits, priceOfCall } from "./call-price.ts";
import { type Cost, priceUsage } from "./cost.ts";
import { writeDurably } from "./durable-write.ts";
import { monthStartOf } from "./month-cost.ts";
import { type SealedKey, toUsableKey } from "./provider-keys.ts";
import {
  type CallEnd,
  deleteCallsBefore,
  hasLimits,
  isSameKeyRowSql,
  isSameUnlimitedKeySql,
  type KeyRefusal,
  type LateRefusal,
  moveCallsSql,
  openUnlimitedCallsSql,
  type Reservation,
  type ReservationResult,
  reservationResultsSql,
  reserveCall,
  toKeyRow,
  updateEndedCall,
} from "./queries.ts";

/** Renewed while the process runs (leases.ts): a call may take half an hour. */
export const LEASE_MS = 90_000;
/** Budgets count one month; the month before stays for questions. */
const RETENTION_DAYS = 62;

/** A call that counts against the limits of its key until it ends. */
export interface OpenCall {
  reservation: Reservation;
  key: SealedKey;
  /** The output tokens that the rest of the budget pays for; undefined: no budget limits them, or they are not known yet. */
  maxTokens?: number | undefined;
}

export interface CallInput {
  executionId: string;
  model: string;
  messages: readonly Message[];
  options: AnswerLimits;
}

/** Prepares the reservation of a call, without a write. null: the sandbox, which has no key and no limits. */
export function toOpenCall(ctx: Context, key: SealedKey, input: CallInput): OpenCall | null {
  if (key.id === null) return null;
  const now = ctx.now();
  const reservation = {
    callId: ctx.newId(),
    providerKeyId: key.id,
    executionId: input.executionId,
    // Only a budget needs the price, and its look-up takes longer than everything else here.
    price: key.monthlyBudgetUsd === null ? null : priceOfCall({ ...input, provider: key.provider, at: now }),
    startedAt: now,
    monthStart: monthStartOf(now),
    leaseUntil: new Date(now.getTime() + LEASE_MS),
  };
  return { reservation, key };
}

const BUDGET_RESERVED =
  "Running calls reserve the rest of the stored key's monthly budget. Wait until one has ended, lower maxTokens, or raise monthlyBudget.";

/** Throws KEY_BUDGET_EXCEEDED, KEY_CONCURRENCY_LIMIT or PROVIDER_KEY_NOT_FOUND when a limit refuses the call. */
export function mustBeWithinLimits(refusedBy: KeyRefusal | undefined): void {
  if (refusedBy === undefined) return;
  const details = { source: "marketplace" };
  if (refusedBy === "reserved")
    throw new ApiError("KEY_BUDGET_EXCEEDED", BUDGET_RESERVED, { ...details, reason: "reserved" }, 1);
  if (refusedBy === "forgotten") throw new ApiError("PROVIDER_KEY_NOT_FOUND", undefined, details);
  if (refusedBy === "concurrency") throw new ApiError("KEY_CONCURRENCY_LIMIT", undefined, details, 1);
  throw new ApiError("KEY_BUDGET_EXCEEDED", undefined, details);
}

export type CallResult = { cost: Cost } | { cause: unknown; cost: Cost | null };

/** The new status of the key when the provider accepts or refuses it; null: no change. */
function findNewKeyStatus(key: SealedKey, result: CallResult): CallEnd["keyStatus"] {
  if (!("cause" in result)) return key.status === "valid" ? null : "valid";
  const { cause } = result;
  return cause instanceof ProviderError && cause.code === "PROVIDER_KEY_INVALID" ? "invalid" : null;
}

export function toCallEnd(ctx: Context, call: OpenCall | null, result: CallResult): CallEnd | null {
  if (!call) return null;
  const { providerKeyId, callId } = call.reservation;
  return {
    callId,
    key: { id: providerKeyId, sealedKey: call.key.sealedKey },
    costUsd: result.cost?.estimatedCost ?? 0,
    keyStatus: findNewKeyStatus(call.key, result),
    endedAt: ctx.now(),
  };
}

/** Parts for the `with` of a statement that ends and opens many calls, and the column of the reservations. */
export const toMoveCallsSql = (
  { ended, opened }: { ended: readonly CallEnd[]; opened: readonly OpenCall[] },
  condition: RawBuilder<unknown>,
) => ({
  parts: moveCallsSql(ended, opened.map(toOpenedCall), condition),
  reserved: reservationResultsSql,
});

const toOpenedCall = ({ reservation, key: { sealedKey, status, monthlyBudgetUsd } }: OpenCall) => ({
  reservation,
  key: { sealedKey, status, hasBudget: monthlyBudgetUsd !== null },
});

/** A call whose key has no limits, as a row of a statement that opens several. */
export const toUnlimitedCallRow = ({ reservation, key }: OpenCall) => ({
  id: reservation.executionId,
  callId: reservation.callId,
  ...{ keyId: reservation.providerKeyId, sealedKey: key.sealedKey, keyStatus: key.status },
  ...{ callStartedAt: reservation.startedAt, callLeaseUntil: reservation.leaseUntil },
});

/** In SQL: whether the key of such a row `opened` is as its caller read it. */
export const isSameOpenedKeySql = isSameUnlimitedKeySql(sql.raw(`opened."keyId"`), {
  sealedKey: sql.raw(`opened."sealedKey"`),
  status: sql.raw(`opened."keyStatus"`),
});

export type { CallEnd, LateRefusal, ReservationResult as Reserved };
export { hasLimits, isSameKeyRowSql, openUnlimitedCallsSql, toKeyRow };

export type KeyedCall = CallInput &
  Pick<ProviderCall, "options" | "signal" | "timeoutMs" | "versionId" | "sample"> & { key: SealedKey };

export async function openCall(ctx: Context, key: SealedKey, input: CallInput): Promise<OpenCall | null> {
  const call = toOpenCall(ctx, key, input);
  return call && withReservation(call, await reserveCall(ctx.db, call.reservation));
}

/** The call with the result of its reservation. Throws what `mustBeWithinLimits` does. */
export function withReservation(call: OpenCall, { refusedBy, maxTokens }: ReservationResult): OpenCall {
  mustBeWithinLimits(refusedBy);
  return { ...call, maxTokens: maxTokens ?? undefined };
}

/** `usage`: the billed usage of a call without an answer; null: none. */
type FailedCall = { cause: unknown; usage: TokenUsage | null };

/** The caller writes `end`; null: the call has no key with limits. */
export type FinishedCall<Answer> = ({ answer: Answer; cost: Cost } | FailedCall) & { end: CallEnd | null };

/** What a call asks of a provider. */
export type AskProvider<Answer> = (ai: AiProviders, call: ProviderCall) => Promise<Answer>;

export const askForText: AskProvider<ProviderAnswer> = (ai, call) => ai.run(call);

/** For the vectors of the messages' texts. */
export const askForVectors: AskProvider<EmbeddingAnswer> = (ai, { messages, ...call }) =>
  ai.embed({ ...call, texts: messages.map(({ content }) => content) });

/**
 * The usage of a call without an answer: the provider's count, else our estimate for a call that was abandoned after it was sent,
 * or that broke off after output began. null: none.
 */
export function findUsageOfFailure(
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
 * Makes an opened call as part of an execution and prices it. The caller must write `end` and then call `releaseCall`, which stops
 * the renewal of its lease. Not in a transaction.
 */
export async function makeCall<Answer extends Pick<ProviderAnswer, "model" | "usage">>(
  ctx: Context,
  call: OpenCall | null,
  { key, executionId: _, ...input }: KeyedCall,
  ask: AskProvider<Answer>,
): Promise<FinishedCall<Answer>> {
  const { provider, baseUrl } = key;
  const progress = new CallProgress();
  keepLeaseRenewed(ctx, call);
  const priceOf = (model: string, usage: ProviderAnswer["usage"]) =>
    priceUsage({ provider, model, askedModel: input.model, usage, at: ctx.now() });
  try {
    const answer = await ask(ctx.integrations.ai, {
      ...{ provider, baseUrl, apiKey: toUsableKey(ctx, key).secret },
      ...{ ...input, progress, options: { ...input.options, capTokens: call?.maxTokens } },
    });
    const cost = priceOf(answer.model, answer.usage);
    return { answer, cost, end: toCallEnd(ctx, call, { cost }) };
  } catch (cause) {
    const usage = findUsageOfFailure(cause, input.messages, progress);
    const cost = usage && priceOf(input.model, usage);
    return { cause, usage, end: toCallEnd(ctx, call, { cause, cost }) };
  }
}

/** Renews the lease of a call until the returned function is called. */
export function keepLeaseRenewed({ liveRuns }: Context, call: OpenCall | null): () => void {
  if (!call) return () => {};
  const { callId } = call.reservation;
  liveRuns.callIds.add(callId);
  return () => void liveRuns.callIds.delete(callId);
}

/** Stops the renewal of the lease, after the end of the call is written. */
export const releaseCall = ({ liveRuns }: Context, { callId }: CallEnd): void =>
  void liveRuns.callIds.delete(callId);

/** The provider may have billed the call, so a failed write must not lose the answer. */
export async function endCall(ctx: Context, end: CallEnd): Promise<void> {
  let written: Promise<unknown> = Promise.resolve();
  await writeDurably(
    ctx,
    { call: end.callId },
    () => updateEndedCall(ctx.db, end),
    (laterWrite) => {
      written = laterWrite;
    },
  );
  void written.then(() => releaseCall(ctx, end));
}

export async function deleteOldCalls(ctx: Context): Promise<void> {
  await deleteCallsBefore(ctx.db, daysAfter(ctx.now(), -RETENTION_DAYS));
}
