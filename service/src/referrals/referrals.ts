import { randomInt } from "node:crypto";
import type { Referral } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { ruleBroken } from "../errors.ts";
import { toDecimal } from "../money/amount.ts";
import { countReferred, type EarningsRow, findOwner, insertOrFindCode, sumEarnings } from "./queries.ts";

/** No vowels, so that no word comes about, and no two that look alike. 21^9 codes: nobody guesses one. */
const LETTERS = "CDFGHJKMNPQRTVWX34679";
const LENGTH = 9;

/** What sellers give until they say otherwise (0001_people.sql). */
const USUAL_COMMISSION_BASIS_POINTS = 1_000;

const drawCode = () => Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");

/** One's own code, made at the first look, and what it has earned. */
export async function readReferral(ctx: Context, { userId }: Member): Promise<Referral> {
  const made = { user_id: userId, code: drawCode(), created_at: ctx.now() };
  const code = await insertOrFindCode(ctx.db, made);
  return {
    code,
    url: `${ctx.links.origin()}/?ref=${code}`,
    commissionBasisPoints: USUAL_COMMISSION_BASIS_POINTS,
    sales: await countReferred(ctx.db, userId),
    earnings: (await sumEarnings(ctx.db, userId, ctx.now())).map(toEarnings),
  };
}

const toEarnings = ({ currency, totalMinor, pendingMinor, availableMinor }: EarningsRow) => ({
  currency,
  total: toDecimal(totalMinor, currency),
  pending: toDecimal(pendingMinor, currency),
  available: toDecimal(availableMinor, currency),
});

/** Who gets the commission of a purchase, and by which code. */
export interface Referrer {
  userId: string;
  code: string;
}

const unusable = (reason: string) => ruleBroken("referralCode", reason);

/** Codes are read aloud and typed: neither case nor blanks matter. */
export async function findReferrer(
  ctx: Context,
  code: string,
  { buyerId, sellerId }: { buyerId: string; sellerId: string },
): Promise<Referrer> {
  const owner = await findOwner(ctx.db, code.trim().toUpperCase());
  if (!owner) throw unusable("is not a code that anybody uses");
  if (owner.isGone) throw expiredReferral();
  if (owner.userId === buyerId) throw unusable("is your own");
  if (owner.userId === sellerId) throw unusable("is the seller's own");
  return { userId: owner.userId, code: owner.code };
}

/** Its owner has left, maybe a moment ago. */
export const expiredReferral = () => unusable("has expired: whoever it belonged to has left");
