import type { CloseAccount } from "@stoa/contract";
import { deleteAllKeys } from "../../accounts/api-keys/keys.ts";
import { deleteNotifications } from "../../accounts/notifications/notifications.ts";
import { deleteGrantsAndClients } from "../../accounts/oauth/cleanup.ts";
import {
  type AccountRow,
  anonymizeAccount,
  lockAccountForClosing,
  mustNotBeLastAdmin,
} from "../../accounts/people/accounts.ts";
import { unlinkIdentities } from "../../accounts/people/identities.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { deleteLateRequests, deleteRequestLog } from "../../accounts/request-logs/request-log.ts";
import { deleteSessions } from "../../accounts/sessions/sessions.ts";
import { deleteOneTimeTokens } from "../../accounts/sign-in/one-time-tokens.ts";
import { removeAuthenticator } from "../../accounts/two-factor/second-factor.ts";
import { deleteImportNames } from "../../catalog/import-export/product-names.ts";
import { updateAuthorOnProducts } from "../../catalog/products/author-listings.ts";
import { unpublishAll } from "../../catalog/products/moves.ts";
import { deleteProductDrafts } from "../../catalog/products/product-drafts.ts";
import { deleteWishlist } from "../../catalog/wishlist/wishlist.ts";
import { deletePaymentMethods } from "../../commerce/charges/payment-methods.ts";
import { arePayoutsDisabled } from "../../commerce/charges/payout-account.ts";
import { mustHaveNoOpenOrders } from "../../commerce/checkout/open-orders.ts";
import {
  formatAmounts,
  payOutBalance,
  type RemainingBalance,
  saveLastAddress,
  toAmounts,
} from "../../commerce/payouts/account-closing.ts";
import { hasOpenPayment } from "../../commerce/plans/plan-payment.ts";
import { endSubscription } from "../../commerce/plans/subscription.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { deleteWebhooksOnAccountClosed } from "../../events/webhooks/closed-account.ts";
import { deleteEvaluations } from "../../execution/evaluations/account-closing.ts";
import { eraseRunsOfUser } from "../../execution/prompt-runs/erase-runs.ts";
import { cancelAllRuns } from "../../execution/workflow-runs/cancel-all-runs.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { retryOnDeadlock, type Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import { clearedSessionCookie } from "../../platform/http/envelope.ts";
import { deleteIdempotencyKeysOf } from "../../platform/http/idempotency.ts";
import { DataResponse } from "../../platform/http/route.ts";

/** Each room that stores personal data has a handler here. */
const onAccountClosed: ((
  ctx: Context,
  tx: Tx,
  user: AccountRow,
  source: RequestSource | null,
) => Promise<unknown>)[] = [
  (_ctx, tx, user) => deleteSessions(tx, user.id),
  (_ctx, tx, user) => deleteAllKeys(tx, user.id),
  (_ctx, tx, user) => deleteWishlist(tx, user.id),
  (_ctx, tx, user) => deleteRequestLog(tx, user.id),
  (_ctx, tx, user) => deleteGrantsAndClients(tx, user.id),
  (_ctx, tx, user) => unlinkIdentities(tx, user.id),
  (_ctx, tx, user) => removeAuthenticator(tx, user.id),
  (_ctx, tx, user) => deleteOneTimeTokens(tx, { userId: user.id, email: user.email }),
  (_ctx, tx, user) => deleteIdempotencyKeysOf(tx, user.id),
  (ctx, tx, user) => cancelAllRuns(ctx, tx, user.id, "account_closed"),
  (ctx, tx, user) => eraseRunsOfUser(ctx, tx, user.id),
  (_ctx, tx, user) => deleteEvaluations(tx, user.id),
  (ctx, tx, user) => endSubscription(ctx, tx, user.id, "free"),
  (ctx, tx, user, source) => unpublishAll(ctx, tx, user.id, source),
  (_ctx, tx, user) => deleteImportNames(tx, user.id),
  (_ctx, tx, user) => deleteProductDrafts(tx, user.id),
  (ctx, tx, user) => deletePaymentMethods(ctx, tx, user.id),
  (ctx, tx, user) => deleteWebhooksOnAccountClosed(ctx, tx, user.id),
  // The last, because the others notify the user.
  (_ctx, tx, user) => deleteNotifications(tx, user.id),
];

/**
 * Closes the account in one transaction. The ledger's rows stay without a name, buyers keep their products, and the
 * address is free for a new account.
 */
export async function closeAccount(
  ctx: Context,
  caller: SessionCaller,
  { confirm, giveUpBalance }: CloseAccount,
  source: RequestSource,
) {
  const isSetUp = !(await arePayoutsDisabled(ctx, caller.userId));
  const close = async (tx: Tx) => {
    await mustNotBeLastAdmin(tx, caller.userId);
    const user = await lockAccountForClosing(tx, caller.userId);
    mustBeConfirmed(user, confirm);
    await mustHaveNothingOpen(tx, user.id);
    const left = await payOutBalance(ctx, tx, user.id, { giveUpBalance, isSetUp });
    if (left) await saveLastAddress(tx, user);
    await queueEmail(ctx, tx, user.email, renderClosedEmail(ctx, user, left));
    await removeAccountData(ctx, tx, user, source);
    await recordAudit(ctx, tx, { actorId: user.id, action: "account.closed", source });
    return left;
  };
  const remainder = await retryOnDeadlock(() => ctx.db.transaction().execute(close));
  await deleteLateRequests(ctx, caller.userId).catch((error) =>
    ctx.log.warn({ err: error }, "late requests of a closed account stay until the nightly deletion"),
  );
  const closed = { id: toUserId(caller.userId), closed: true as const, closedAt: ctx.now().toISOString() };
  const data = remainder ? { ...closed, toBePaid: toAmounts(remainder.amounts) } : closed;
  return new DataResponse(data, { cookies: [clearedSessionCookie] });
}

/** Closes a demo account that the ledger needs, without the checks of a request. */
export const closeDemoAccount = async (ctx: Context, tx: Tx, userId: string): Promise<void> =>
  removeAccountData(ctx, tx, await lockAccountForClosing(tx, userId), null);

async function removeAccountData(
  ctx: Context,
  tx: Tx,
  user: AccountRow,
  source: RequestSource | null,
): Promise<void> {
  for (const handler of onAccountClosed) await handler(ctx, tx, user, source);
  await updateAuthorOnProducts(tx, await anonymizeAccount(ctx, tx, user));
}

/** An account cannot close while a payment by or to the user is undecided. */
async function mustHaveNothingOpen(tx: Tx, userId: string): Promise<void> {
  await mustHaveNoOpenOrders(tx, userId);
  if (!(await hasOpenPayment(tx, userId))) return;
  const why = "The payment for your plan is not settled yet: confirm it, or choose your present plan again.";
  throw new ApiError("INVALID_STATE", why, { current: "money_open" });
}

function mustBeConfirmed(user: AccountRow, confirm: string): void {
  if (confirm.trim().toLowerCase() === user.email.toLowerCase()) return;
  throw ruleViolation("confirm", "is not the address of this account");
}

const renderClosedEmail = (ctx: Context, { name }: AccountRow, left: RemainingBalance | null) =>
  renderEmail({
    subject: "Your Stoa account is closed",
    paragraphs: [
      `Goodbye, ${name}.`,
      `Your account at ${ctx.links.origin()} is closed: you are signed out everywhere, your keys have stopped working, and your products are off sale. Those who bought them keep them.`,
      "Your name, this address and what you ran are removed. Orders, payments for plans and their receipts are kept, because accounting needs them.",
      ...(left ? [balanceParagraph(left)] : []),
    ],
    footnotes: [
      "If you did not do this, contact the operator of this marketplace. You can register again with this address.",
    ],
  });

const balanceParagraph = ({ amounts, destination }: RemainingBalance) =>
  `${formatAmounts(amounts)} is still yours: it is paid out to ${destination} at the payment provider when it becomes available, less refunds until then. We email each payout to this address, which is kept only for that.`;
