import type { CardSetup, PaymentMethod } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { PaymentMethod as ProvidersMethod } from "../../integrations/payments/payments.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import {
  clearDefaultMethod,
  countMethods,
  deleteMethod,
  deleteMethodsOf,
  findDefaultMethod,
  findMethod,
  insertMethod,
  isMethodStored,
  listMethods,
  lockCustomer,
  type MethodRow,
  setDefaultMethod,
} from "./payment-method-queries.ts";
import { unavailableIfUnreachable } from "./provider-errors.ts";

const MAX_METHODS = 10;

/** The format of providers' ids; other text does not reach the database. */
const METHOD_ID = /^\w{1,255}$/;

const findOwnMethod = async (db: Queries, userId: string, id: string): Promise<MethodRow | undefined> =>
  METHOD_ID.test(id) ? findMethod(db, userId, id) : undefined;

const findSharedMethod = (ctx: Context, id: string): ProvidersMethod | undefined =>
  ctx.integrations.payments.sharedMethods.find((method) => method.id === id);

/** Falls back to the shared test method. */
export const defaultOr = (ctx: Context, chosen: string | null): string | null =>
  chosen ?? ctx.integrations.payments.sharedMethods[0]?.id ?? null;

export const defaultMethodOf = async (ctx: Context, userId: string): Promise<string | null> =>
  defaultOr(ctx, await findDefaultMethod(ctx.db, userId));

export const isUsableMethod = async (ctx: Context, userId: string, methodId: string): Promise<boolean> =>
  findSharedMethod(ctx, methodId) !== undefined ||
  (await findOwnMethod(ctx.db, userId, methodId)) !== undefined;

export async function choosePaymentMethod(
  ctx: Context,
  userId: string,
  named: string | undefined,
): Promise<string | null> {
  if (named === undefined) return defaultMethodOf(ctx, userId);
  if (await isUsableMethod(ctx, userId, named)) return named;
  throw unknownMethodError(ctx, "paymentMethodId", named);
}

/** The error names the reason if the token belongs to another provider. */
function unknownMethodError(ctx: Context, field: string, named: string, otherwise?: string): ApiError {
  const reason = ctx.integrations.payments.findTokenProblem(named);
  if (!reason) return new ApiError("PAYMENT_METHOD_NOT_FOUND", otherwise);
  return new ApiError("PAYMENT_METHOD_NOT_FOUND", `${field}: ${reason}`, { field, reason });
}

const toMethod = (
  { id, brand, last4, createdAt }: ProvidersMethod & { createdAt?: Date },
  defaultId: string | null,
): PaymentMethod => ({
  id,
  brand,
  last4,
  isDefault: id === defaultId,
  createdAt: createdAt?.toISOString() ?? null,
});

/** The user's own methods, newest first, then the shared ones. */
export async function listPaymentMethods(
  ctx: Context,
  caller: Member,
  paging: Paging,
): Promise<Page<PaymentMethod>> {
  const { items, total } = await listMethods(ctx, caller.userId, paging);
  const { sharedMethods } = ctx.integrations.payments;
  const from = Math.max(0, offsetOf(paging) - total);
  const shared = sharedMethods.slice(from, from + paging.limit - items.length);
  const defaultId = await defaultMethodOf(ctx, caller.userId);
  return {
    items: [...items, ...shared].map((method) => toMethod(method, defaultId)),
    total: total + sharedMethods.length,
  };
}

/** The provider's page on which the caller enters a card. */
export async function startCardSetup(ctx: Context, caller: Member, returnTo: string): Promise<CardSetup> {
  const url = await unavailableIfUnreachable(() =>
    ctx.integrations.payments.startCardSetup(toId("usr", caller.userId), returnTo),
  );
  return { url };
}

/** `token`: from the provider, by way of the browser. Adding a stored method again returns it. */
export async function addPaymentMethod(ctx: Context, caller: Member, token: string): Promise<PaymentMethod> {
  const { userId } = caller;
  const found = await unavailableIfUnreachable(() =>
    ctx.integrations.payments.findMethod(toId("usr", userId), token),
  );
  if (!found) throw unknownMethodError(ctx, "token", token, "The payment provider knows no such token.");
  return ctx.db.transaction().execute(async (tx) => {
    const chosen = await lockCustomer(tx, userId);
    const stored = (await findMethod(tx, userId, found.id)) ?? (await saveMethod(ctx, tx, userId, found));
    const defaultId = defaultOr(ctx, chosen);
    if (defaultId === null) await setDefaultMethod(tx, userId, stored.id);
    await ctx.idempotencyKey?.bind(tx, stored.id);
    return toMethod(stored, defaultId ?? stored.id);
  });
}

async function saveMethod(ctx: Context, tx: Tx, userId: string, method: ProvidersMethod): Promise<MethodRow> {
  if ((await countMethods(tx, userId)).count >= MAX_METHODS)
    throw ruleViolation(
      "token",
      `is one too many: an account has ${MAX_METHODS} payment methods, remove one first`,
    );
  await insertMethod(tx, userId, method, ctx.now());
  return { ...method, createdAt: ctx.now() };
}

export const setDefaultPaymentMethod = (
  ctx: Context,
  caller: Member,
  methodId: string,
): Promise<PaymentMethod> =>
  ctx.db.transaction().execute(async (tx) => {
    await lockCustomer(tx, caller.userId);
    const method = findSharedMethod(ctx, methodId) ?? (await findOwnMethod(tx, caller.userId, methodId));
    if (!method) throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
    await setDefaultMethod(tx, caller.userId, methodId);
    await ctx.idempotencyKey?.bind(tx, methodId);
    return toMethod(method, methodId);
  });

/** Handles a repeated Idempotency-Key. */
export async function resumeMethod(ctx: Context, caller: Member, methodId: string): Promise<PaymentMethod> {
  const method = findSharedMethod(ctx, methodId) ?? (await findOwnMethod(ctx.db, caller.userId, methodId));
  if (!method) throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
  return toMethod(method, await defaultMethodOf(ctx, caller.userId));
}

export async function removePaymentMethod(ctx: Context, caller: Member, methodId: string) {
  if (findSharedMethod(ctx, methodId))
    throw ruleViolation("methodId", "is a shared test method and cannot be removed");
  await ctx.db.transaction().execute(async (tx) => {
    const chosen = await lockCustomer(tx, caller.userId);
    if (!(await findOwnMethod(tx, caller.userId, methodId))) throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
    await deleteMethod(tx, caller.userId, methodId);
    await queueDetach(ctx, tx, methodId);
    if (chosen === methodId) await setDefaultMethod(tx, caller.userId, null);
  });
  return { id: methodId, deleted: true as const };
}

/** Runs when an account is closed. */
export async function deletePaymentMethods(ctx: Context, tx: Tx, userId: string): Promise<void> {
  for (const { id } of await deleteMethodsOf(tx, userId)) await queueDetach(ctx, tx, id);
  await clearDefaultMethod(tx, userId);
}

/** Retried for about two days. */
export const detachMethodJob: JobDefinition = {
  name: "detach-payment-method",
  retries: 20,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 14_400,
  attemptTimeoutSeconds: 120,
};

export interface DetachedMethod {
  methodId: string;
}

/** Detaches after the commit. */
const queueDetach = (ctx: Context, tx: Tx, methodId: string): Promise<void> =>
  ctx.jobs.send(tx, detachMethodJob.name, { methodId } satisfies DetachedMethod);

/** Does nothing if a user stored the method again. */
export async function detachAtProvider(ctx: Context, { methodId }: DetachedMethod): Promise<void> {
  if (await isMethodStored(ctx.db, methodId)) return;
  await ctx.integrations.payments.detachMethod(methodId);
}
