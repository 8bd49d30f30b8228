import { isDeepStrictEqual } from "node:util";
import { type Account, rolePermissions, type UpdateAccount } from "@stoa/contract";
import { type AccountRow, findAccount, lockAccount, updateAccount } from "../../accounts/people/accounts.ts";
import { setHandle } from "../../accounts/people/handles.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { hasSecondFactor } from "../../accounts/two-factor/second-factor.ts";
import { updateAuthorOnProducts } from "../../catalog/products/author-listings.ts";
import { avatarUrl } from "../../catalog/search/card.ts";
import type { Context, Member, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse, type RequestInfo } from "../../platform/http/route.ts";
import { readView } from "../admin/account-views.ts";

const toAccount = (
  ctx: Context,
  user: AccountRow,
  secondFactor: boolean,
  view: Account["view"] = null,
): Account => ({
  id: toUserId(user.id),
  email: user.email,
  name: user.name,
  bio: user.bio,
  handle: user.handle,
  avatar: avatarUrl(user.avatar, ctx.links.origin()),
  links: user.links,
  role: user.role,
  permissions: [...rolePermissions[user.role]],
  plan: user.plan,
  emailVerified: user.emailVerifiedAt !== null,
  verified: user.verified,
  twoFactor: { enabled: secondFactor },
  refundDays: user.refundDays,
  refundFailedRuns: user.refundFailedRuns,
  commissionBasisPoints: user.commissionBasisPoints,
  country: user.country,
  createdAt: user.createdAt.toISOString(),
  view,
});

export async function readAccount(ctx: Context, caller: Member): Promise<Account> {
  const { userId } = caller;
  const user = await findAccount(ctx.db, userId);
  const view = await readView(ctx, caller);
  return toAccount(ctx, required(user, "the account"), await hasSecondFactor(ctx.db, userId), view);
}

const FIELDS = [
  "name",
  "bio",
  "handle",
  "links",
  "refundDays",
  "refundFailedRuns",
  "commissionBasisPoints",
  "country",
] as const;
/** What products show of their author, or what decides about their sales. */
const FIELDS_ON_PRODUCTS: readonly string[] = [
  "name",
  "bio",
  "handle",
  "refundDays",
  "commissionBasisPoints",
];
type Profile = Pick<AccountRow, (typeof FIELDS)[number]>;

const findChangedFields = (before: Profile, after: Profile) =>
  FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));

const applyChange = (user: AccountRow, change: UpdateAccount): AccountRow => ({
  ...user,
  name: change.name ?? user.name,
  bio: change.bio ?? user.bio,
  handle: change.handle ?? user.handle,
  links: change.links ?? user.links,
  refundDays: change.refundDays ?? user.refundDays,
  refundFailedRuns: change.refundFailedRuns ?? user.refundFailedRuns,
  commissionBasisPoints: change.commissionBasisPoints ?? user.commissionBasisPoints,
  country: change.country === undefined ? user.country : change.country,
});

const toColumns = (user: AccountRow) => ({
  name: user.name,
  bio: user.bio,
  links: JSON.stringify(user.links),
  refundDays: user.refundDays,
  refundFailedRuns: user.refundFailedRuns,
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
    mustMatch(ifMatch, etagOf(toAccount(ctx, before, secondFactor)));
    const after = applyChange(before, change);
    if (before.handle !== null && after.handle !== before.handle)
      throw ruleViolation("handle", "cannot be changed once it is chosen");
    const fields = findChangedFields(before, after);
    if (fields.length > 0) {
      await updateAccount(tx, userId, toColumns(after));
      if (after.handle !== null && before.handle === null) await setHandle(tx, userId, after.handle);
      // This locks and writes every product of the account.
      if (fields.some((field) => FIELDS_ON_PRODUCTS.includes(field))) await updateAuthorOnProducts(tx, after);
      // The names of fields only: the log outlives the users' data.
      await recordAudit(ctx, tx, { actorId: userId, action: "account.changed", source, details: { fields } });
    }
    return toAccount(ctx, after, secondFactor);
  });
  return new DataResponse(account, { etag: etagOf(account) });
}
