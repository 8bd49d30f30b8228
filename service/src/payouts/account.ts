import type { NamePayoutAccount, PayoutAccount } from "@stoa/contract";
import { record } from "../audit/audit.ts";
import type { Context, SessionCaller, Source } from "../context.ts";
import { composeLetter } from "../mail/letter.ts";
import { sendMail } from "../mail/mail.ts";
import { namePayoutAccount, payoutAccountOf } from "../payments/payout-account.ts";
import { lockAccount } from "../people/accounts.ts";
import { mustBeFresh } from "../sessions/fresh.ts";

export const readAccount = async (ctx: Context, caller: SessionCaller): Promise<PayoutAccount> => ({
  account: await payoutAccountOf(ctx, ctx.db, caller.userId),
});

/** Payouts go there from now on; those that are made already go where they went. */
export async function nameAccount(
  ctx: Context,
  caller: SessionCaller,
  { account }: NamePayoutAccount,
  source: Source,
): Promise<PayoutAccount> {
  mustBeFresh(ctx, caller);
  await ctx.db.transaction().execute(async (tx) => {
    const { email } = (await lockAccount(tx, caller.userId))!;
    const before = await payoutAccountOf(ctx, tx, caller.userId);
    await namePayoutAccount(tx, caller.userId, account);
    await record(ctx, tx, {
      actorId: caller.userId,
      action: "payout_account.changed",
      source,
      details: { from: before, to: account },
    });
    await sendMail(ctx, tx, email, changedLetter(account));
  });
  return { account };
}

const changedLetter = (account: string) =>
  composeLetter({
    subject: "Your payouts go to another account",
    paragraphs: [`From now on your payouts go to ${account} at the payment provider.`],
    footnotes: [
      "If you did not do this, somebody else is signed in as you: end all sessions, change your password, and write to whoever runs this marketplace.",
    ],
  });
