import {
  type NotificationKind,
  type NotificationPreferences,
  notificationEmails,
  notificationKinds,
  type UpdateNotificationPreferences,
} from "@stoa/contract";
import type { Context, Member, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { lockAccount } from "../people/accounts.ts";
import { isEmailOptional } from "./notify-account.ts";
import { listPreferences, upsertPreference } from "./queries.ts";

export const readPreferences = (ctx: Context, { userId }: Member) => findPreferences(ctx.db, userId);

async function findPreferences(db: Queries, userId: string): Promise<NotificationPreferences> {
  const choices = new Map((await listPreferences(db, userId)).map(({ kind, email }) => [kind, email]));
  const kinds = notificationKinds.map((kind) => {
    const canChangeEmail = isEmailOptional(kind);
    const email = canChangeEmail ? (choices.get(kind) ?? true) : notificationEmails[kind] === "always";
    return [kind, { email, canChangeEmail }];
  });
  return { kinds: Object.fromEntries(kinds) };
}

/** Kinds that were not sent stay. */
export const changePreferences = (
  ctx: Context,
  { userId }: SessionCaller,
  change: UpdateNotificationPreferences,
  ifMatch: string | null,
): Promise<DataResponse<NotificationPreferences>> =>
  ctx.db.transaction().execute(async (tx) => {
    const account = required(await lockAccount(tx, userId), "the account");
    if (account.closedAt) throw new ApiError("INVALID_API_KEY");
    const before = await findPreferences(tx, userId);
    mustMatch(ifMatch, etagOf(before));
    for (const [name, fields] of Object.entries(change.kinds)) {
      const [kind, email] = [name as NotificationKind, fields?.email];
      if (email === undefined || email === before.kinds[kind].email) continue;
      if (!isEmailOptional(kind)) throw fixedEmail(kind);
      await upsertPreference(tx, { userId, kind, email });
    }
    const after = await findPreferences(tx, userId);
    return new DataResponse(after, { etag: etagOf(after) });
  });

const fixedEmail = (kind: NotificationKind) =>
  ruleViolation(
    `kinds.${kind}.email`,
    notificationEmails[kind] === "always"
      ? "cannot be switched off: the email concerns security or is a receipt"
      : "cannot be switched on: this kind has no email",
  );
