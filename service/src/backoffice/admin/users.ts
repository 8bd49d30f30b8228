import type { AdminUser, AdminUserDetail, Plan, Role } from "@stoa/contract";
import { type AccountRow, findAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { hasSecondFactor } from "../../accounts/two-factor/second-factor.ts";
import { avatarUrl } from "../../catalog/search/card.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { listUsers as findUsers } from "./queries.ts";

const toAdminUser = (ctx: Context, user: AccountRow): AdminUser => ({
  id: toUserId(user.id),
  email: user.email,
  name: user.name,
  bio: user.bio,
  handle: user.handle,
  avatar: avatarUrl(user.avatar, ctx.links.origin()),
  links: user.links,
  role: user.role,
  plan: user.plan,
  quota: user.quota,
  emailVerified: user.emailVerifiedAt !== null,
  verified: user.verified,
  refundDays: user.refundDays,
  refundFailedRuns: user.refundFailedRuns,
  commissionBasisPoints: user.commissionBasisPoints,
  country: user.country,
  bannedAt: user.bannedAt?.toISOString() ?? null,
  banReason: user.banReason,
  closedAt: user.closedAt?.toISOString() ?? null,
  createdAt: user.createdAt.toISOString(),
});

const toDetail = async (ctx: Context, db: Queries, user: AccountRow): Promise<AdminUserDetail> => ({
  ...toAdminUser(ctx, user),
  twoFactor: { enabled: await hasSecondFactor(db, user.id) },
});

/** Compared with If-Match. */
export const toUserEtag = async (ctx: Context, tx: Tx, user: AccountRow) =>
  etagOf(await toDetail(ctx, tx, user));

interface UserQuery extends Paging {
  search?: string | undefined;
  role?: Role | undefined;
  plan?: Plan | undefined;
  status?: "active" | "banned" | "closed" | undefined;
}

export async function listUsers(ctx: Context, query: UserQuery): Promise<Page<AdminUser>> {
  const id = (query.search && toUuid("usr", query.search)) || undefined;
  return mapPage(await findUsers(ctx.db, { ...query, id }), (user) => toAdminUser(ctx, user));
}

/** Throws USER_NOT_FOUND for an invalid id. */
export function parseUserId(userId: string): string {
  const id = toUuid("usr", userId);
  if (!id) throw new ApiError("USER_NOT_FOUND");
  return id;
}

/** With the ETag for a later change. */
export async function readUser(ctx: Context, userId: string): Promise<DataResponse<AdminUserDetail>> {
  const user = await findAccount(ctx.db, parseUserId(userId));
  if (!user) throw new ApiError("USER_NOT_FOUND");
  const detail = await toDetail(ctx, ctx.db, user);
  return new DataResponse(detail, { etag: etagOf(detail) });
}
