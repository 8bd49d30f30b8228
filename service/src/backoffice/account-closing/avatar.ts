import { type AccountRow, lockAccount, updateAccount } from "../../accounts/people/accounts.ts";
import { avatarKey, storeBlob } from "../../catalog/files/blobs.ts";
import { encodeAvatar } from "../../catalog/files/image-encoder.ts";
import { updateAuthorOnProducts } from "../../catalog/products/author-listings.ts";
import { avatarUrl } from "../../catalog/search/card.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";

/** The job that sweeps blobs deletes the bytes of the avatar before. */
export async function uploadAvatar(
  ctx: Context,
  caller: SessionCaller,
  upload: UploadedFile,
  source: RequestSource,
) {
  const { hash, bytes } = await encodeAvatar(upload);
  await storeBlob(ctx, { key: avatarKey(hash), sha256: hash, size: bytes.length, source: bytes });
  await writeAvatar(ctx, caller, hash, source);
  return required(avatarUrl(hash, ctx.links.origin()), "the avatar");
}

export async function removeAvatar(ctx: Context, caller: SessionCaller, source: RequestSource) {
  await writeAvatar(ctx, caller, null, source);
  return { removed: true as const };
}

async function writeAvatar(
  ctx: Context,
  { userId }: SessionCaller,
  avatar: AccountRow["avatar"],
  source: RequestSource,
): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    const user = required(await lockAccount(tx, userId), "the account");
    if (user.closedAt) throw new ApiError("INVALID_API_KEY");
    if (user.avatar === avatar) return;
    await updateAccount(tx, userId, { avatar });
    await updateAuthorOnProducts(tx, { ...user, avatar });
    const details = { fields: ["avatar"] };
    await recordAudit(ctx, tx, { actorId: userId, action: "account.changed", source, details });
  });
}
