import type { Onboarding, PayoutAccount, SetPayoutAccount } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";
import { findPayoutDestination, readAccountHealth, setPayoutAccount } from "../charges/payout-account.ts";
import { unavailableIfUnreachable } from "../charges/provider-errors.ts";

export const readPayoutAccount = async (ctx: Context, caller: SessionCaller): Promise<PayoutAccount> =>
  toAccount(ctx, await findPayoutDestination(ctx, ctx.db, caller.userId));

async function toAccount(ctx: Context, account: string | null): Promise<PayoutAccount> {
  const health = account === null ? null : await readAccountHealth(ctx, account);
  return {
    account,
    payoutsEnabled: account === null ? false : (health?.payoutsEnabled ?? null),
    disabledReason: health?.disabledReason ?? null,
    requirements: health?.requirements ?? [],
    dueBy: health?.dueBy?.toISOString() ?? null,
  };
}

/** Existing payouts keep their destination. */
export async function setAccount(
  ctx: Context,
  caller: SessionCaller,
  { account }: SetPayoutAccount,
  source: RequestSource,
): Promise<PayoutAccount> {
  await changeDestination(ctx, caller, account, source);
  return toAccount(ctx, account);
}

/** Creates the seller's account at the provider; the seller completes it on the provider's page. */
export async function startOnboarding(
  ctx: Context,
  caller: SessionCaller,
  source: RequestSource,
): Promise<Onboarding> {
  const userId = toUserId(caller.userId);
  const { accountId, url } = await unavailableIfUnreachable(() => ctx.integrations.payments.onboard(userId));
  await changeDestination(ctx, caller, accountId, source);
  return { account: accountId, url };
}

const changeDestination = (ctx: Context, caller: SessionCaller, account: string, source: RequestSource) =>
  ctx.db.transaction().execute(async (tx) => {
    required(await lockAccount(tx, caller.userId), "the account");
    const before = await findPayoutDestination(ctx, tx, caller.userId);
    await setPayoutAccount(tx, caller.userId, account);
    if (before === account) return;
    await recordAudit(ctx, tx, {
      actorId: caller.userId,
      action: "payout_account.changed",
      source,
      details: { from: before, to: account },
    });
    const notification = {
      userId: caller.userId,
      kind: "payout_account.changed" as const,
      subjectId: toUserId(caller.userId),
      data: { account },
      occurrence: ctx.newId(),
    };
    await notifyAccount(ctx, tx, notification, accountChangedEmail(ctx, account));
  });

const accountChangedEmail = (ctx: Context, account: string) =>
  renderEmail({
    subject: "Your payout account changed",
    paragraphs: [`Your payouts now go to ${account} at the payment provider.`],
    footnotes: [
      securityFootnote(ctx),
      "Then contact the operator of this marketplace, who can stop the payouts.",
    ],
  });
