import { type Account, rolePermissions, type UpdateAccount } from "@stoa/contract";
import { type AccountRow, findAccount, lockAccount, updateAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { hasSecondFactor } from "../../accounts/two-factor/second-factor.ts";
import { updateAuthorOnProducts } from "../../catalog/products/author-listings.ts";
import type { Context, Member, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse, type RequestInfo } from "../../platform/http/route.ts";

const toAccount = (user: AccountRow, secondFactor: boolean): Account => ({
  id: toUserId(user.id),
  email: user.email,
  name: user.name,
  bio: user.bio,
  role: user.role,
  permissions: [...rolePermissions[user.role]],
  plan: user.plan,
  emailVerified: user.emailVerifiedAt !== null,
  verified: user.verified,
  twoFactor: { enabled: secondFactor },
  refundDays: user.refundDays,
  commissionBasisPoints: user.commissionBasisPoints,
  country: user.country,
  createdAt: user.createdAt.toISOString(),
});

export async function readAccount(ctx: Context, { userId }: Member): Promise<Account> {
  const user = await findAccount(ctx.db, userId);
  return toAccount(required(user, "the account"), await hasSecondFactor(ctx.db, userId));
}

const FIELDS = ["name", "bio", "refundDays", "commissionBasisPoints", "country"] as const;
type Profile = Pick<AccountRow, (typeof FIELDS)[number]>;

const findChangedFields = (before: Profile, after: Profile) =>
  FIELDS.filter((field) => before[field] !== after[field]);

const applyChange = (user: AccountRow, change: UpdateAccount): AccountRow => ({
  ...user,
  name: change.name ?? user.name,
  bio: change.bio ?? user.bio,
  refundDays: change.refundDays ?? user.refundDays,
  commissionBasisPoints: change.commissionBasisPoints ?? user.commissionBasisPoints,
  country: change.country === undefined ? user.country : change.country,
});

const toColumns = (user: AccountRow) => ({
  name: user.name,
  bio: user.bio,
  refundDays: user.refundDays,
  commissionBasisPoints: user.commissionBasisPoints,
  country: user.country,
});

/** Changes the sent fields. A new name is on the author's products at once. */
export async function changeProfile(
  ctx: Context,
  { userId }: SessionCaller,
  change: UpdateAccount,
  { ifMatch, source }: Pick<RequestInfo, "ifMatch" | "source">,
): Promise<DataResponse<Account>> {
  const account = await ctx.db.transaction().execute(async (tx) => {
    const before = required(await lockAccount(tx, userId), "the account");
    if (before.closedAt) throw new ApiError("INVALID_API_KEY");
    const secondFactor = await hasSecondFactor(tx, userId);
    mustMatch(ifMatch, etagOf(toAccount(before, secondFactor)));
    const after = applyChange(before, change);
    const fields = findChangedFields(before, after);
    if (fields.length > 0) {
      await updateAccount(tx, userId, toColumns(after));
      await updateAuthorOnProducts(tx, after);
      // The names of fields only: the log outlives the users' data.
      await recordAudit(ctx, tx, { actorId: userId, action: "account.changed", source, details: { fields } });
    }
    return toAccount(after, secondFactor);
  });
  return new DataResponse(account, { etag: etagOf(account) });
}
