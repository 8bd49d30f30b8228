import type { RotatedWebhookSecret, RotateWebhookSecret } from "@stoa/contract";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { daysAfter, HOUR_MS } from "../../core/dates.ts";
import { ruleViolation } from "../../core/errors.ts";
import type { Tx } from "../../platform/db/database.ts";
import { secretRotatedEmail } from "./emails.ts";
import { lockEndpoint } from "./endpoints.ts";
import { recordSecretChange } from "./secret-changes.ts";
import { countSecrets, deleteSupersededSecrets, expireSecrets } from "./secret-queries.ts";
import { createSecret } from "./secrets.ts";

/** Each adds a signature to the headers of every delivery. */
const MAX_SECRETS = 10;
const MAX_AHEAD_DAYS = 7;

export async function rotateWebhookSecret(
  ctx: Context,
  caller: Member,
  webhookId: string,
  input: RotateWebhookSecret,
  source: RequestSource,
): Promise<RotatedWebhookSecret> {
  const activatesAt = parseActivation(ctx, input.activateAt);
  const rotated = await ctx.db.transaction().execute(async (tx) => {
    const endpoint = await lockEndpoint(tx, caller, webhookId);
    await ctx.idempotencyKey?.bind(tx, webhookId);
    const added = await addSecret(ctx, tx, endpoint, { activatesAt, overlapHours: input.overlapHours });
    const { activatesAt: from, oldSecretUntil } = added;
    const change = {
      action: "webhook.secret_rotated" as const,
      target: { type: "webhook" as const, id: webhookId },
      details: { activatesAt: from, oldSecretUntil },
    };
    await recordSecretChange(ctx, tx, caller, source, change, {
      data: { change: "secret", url: endpoint.url },
      message: secretRotatedEmail(ctx, endpoint),
    });
    return added;
  });
  return { id: webhookId, ...rotated };
}

/** The caller holds the lock of the queue. */
export async function addSecret(
  ctx: Context,
  tx: Tx,
  endpoint: { id: string; userId: string },
  { activatesAt, overlapHours }: { activatesAt: Date; overlapHours: number },
): Promise<Omit<RotatedWebhookSecret, "id">> {
  const oldSecretUntil = new Date(activatesAt.getTime() + overlapHours * HOUR_MS);
  await deleteSupersededSecrets(tx, endpoint.id, activatesAt, ctx.now());
  await expireSecrets(tx, endpoint.id, oldSecretUntil);
  if ((await countSecrets(tx, endpoint.id, ctx.now())) >= MAX_SECRETS) throw tooManySecrets();
  return {
    secret: await createSecret(ctx, tx, endpoint, activatesAt),
    activatesAt: activatesAt.toISOString(),
    oldSecretUntil: oldSecretUntil.toISOString(),
  };
}

const tooManySecrets = () =>
  ruleViolation(
    "overlapHours",
    `would leave more than ${MAX_SECRETS} secrets that sign; 0 ends the old ones when the new one begins`,
  );

function parseActivation(ctx: Context, activateAt: string | undefined): Date {
  const now = ctx.now();
  if (activateAt === undefined) return now;
  const at = new Date(activateAt);
  if (at < now) throw ruleViolation("activateAt", "is in the past: leave it out for now");
  if (at > daysAfter(now, MAX_AHEAD_DAYS))
    throw ruleViolation("activateAt", `is more than ${MAX_AHEAD_DAYS} days ahead`);
  return at;
}
