import { isDeepStrictEqual } from "node:util";
import type { ChangeUser } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { mustMatch } from "../http/conditional.ts";
import { type AccountRow, writeAccount } from "../people/accounts.ts";
import { changePlan } from "../plans/subscription.ts";
import { type Doer, lockUser, mustNotBeSelf, recordDeed } from "./deed.ts";
import { readUser, tagFor, uuidOf } from "./users.ts";

const FIELDS = ["role", "plan", "quota"] as const;
type Standing = Pick<AccountRow, (typeof FIELDS)[number]>;

/** What the change would make different: as it is, and as it would be. */
function differences(user: AccountRow, change: ChangeUser) {
  const differing = FIELDS.filter(
    (field) => change[field] !== undefined && !isDeepStrictEqual(change[field], user[field]),
  );
  const shown = (from: object) =>
    Object.fromEntries(differing.map((field) => [field, from[field as never]])) as Partial<Standing>;
  return { from: shown(user), to: shown(change) };
}

async function write(ctx: Context, tx: Tx, id: string, { role, plan, quota }: Partial<Standing>) {
  if (role) await writeAccount(tx, id, { role });
  if (quota !== undefined) await writeAccount(tx, id, { quota: quota && JSON.stringify(quota) });
  if (plan) await changePlan(ctx, tx, id, plan);
}

/** Role, plan and quota of an account. Nobody unmakes themselves, and the last administrator stays one. */
export async function changeUser(
  ctx: Context,
  by: Doer,
  userId: string,
  change: ChangeUser,
  ifMatch: string | null,
) {
  const id = uuidOf(userId);
  const unmakesAdmin = change.role !== undefined && change.role !== "admin";
  if (unmakesAdmin) mustNotBeSelf(by, id);
  await ctx.db.transaction().execute(async (tx) => {
    const user = await lockUser(tx, id, { unmakesAdmin });
    mustMatch(ifMatch, await tagFor(tx, user));
    const { from, to } = differences(user, change);
    if (Object.keys(to).length === 0) return;
    await write(ctx, tx, id, to);
    const details = { from, to, ...(change.reason && { reason: change.reason }) };
    await recordDeed(ctx, tx, by, { action: "user.changed", userId: id, details });
  });
  return readUser(ctx, userId);
}
