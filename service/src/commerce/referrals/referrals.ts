import { randomInt } from "node:crypto";
import type { Referral } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { type Balance, balancesOf } from "../ledger/balances.ts";
import { countReferred, findCodeOwner, insertOrFindCode, sumPaidCommissions } from "./queries.ts";

/** No vowels and no similar letters, so that codes form no words. 21^9 codes cannot be guessed. */
const LETTERS = "CDFGHJKMNPQRTVWX34679";
const LENGTH = 9;

/** The database's default for sellers (0001_people.sql). */
const DEFAULT_COMMISSION_BASIS_POINTS = 1_000;

const generateCode = () => Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");

type Commission = Balance["referrer"];

/** Creates the caller's code at the first read. */
export async function readReferral(ctx: Context, { userId }: Member): Promise<Referral> {
  const newCode = { userId, code: generateCode(), createdAt: ctx.now() };
  const code = await insertOrFindCode(ctx.db, newCode);
  return {
    code,
    url: `${ctx.links.origin()}/?ref=${code}`,
    commissionBasisPoints: DEFAULT_COMMISSION_BASIS_POINTS,
    sales: await countReferred(ctx.db, userId),
    earnings: await readEarnings(ctx, userId),
  };
}

/** One snapshot, so that earnings contain a concurrent payout completely or not at all. */
async function readEarnings(ctx: Context, userId: string): Promise<Referral["earnings"]> {
  const [balances, paid] = await ctx.db
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(
      async (tx) => [await balancesOf(tx, userId, ctx.now()), await sumPaidCommissions(tx, userId)] as const,
    );
  return balances
    .map(({ currency, referrer }) => toEarnings(currency, referrer, paid.get(currency) ?? 0n))
    .filter((earned) =>
      [earned.pending, earned.available, earned.reserved, earned.paid].some((one) => one !== 0),
    );
}

function toEarnings(
  currency: string,
  { pendingMinor, availableMinor, reservedMinor }: Commission,
  paidMinor: bigint,
) {
  const amount = (minor: bigint) => toDecimal(minor, currency);
  return {
    currency,
    total: amount(pendingMinor + availableMinor + reservedMinor + paidMinor),
    pending: amount(pendingMinor),
    available: amount(availableMinor),
    reserved: amount(reservedMinor),
    paid: amount(paidMinor),
  };
}

export interface Referrer {
  userId: string;
  code: string;
}

const invalidCodeError = (reason: string) => ruleViolation("referralCode", reason);

/** Users read codes aloud and type them: ignore case and surrounding blanks. */
export async function findReferrer(
  ctx: Context,
  code: string,
  { buyerId, sellerId }: { buyerId: string; sellerId: string },
): Promise<Referrer> {
  const owner = await findCodeOwner(ctx.db, code.trim().toUpperCase());
  if (!owner) throw invalidCodeError("is unknown");
  if (owner.isGone) throw expiredReferralError();
  if (owner.userId === buyerId) throw invalidCodeError("is your own");
  if (owner.userId === sellerId) throw invalidCodeError("is the seller's own");
  return { userId: owner.userId, code: owner.code };
}

export const expiredReferralError = () => invalidCodeError("has expired: the account of its owner is closed");
