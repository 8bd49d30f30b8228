import type { Context, RequestSource } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { networkOf } from "../../core/network.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { addFailure } from "./queries.ts";

const WINDOW_SECONDS = 15 * 60;

const LOG_MESSAGES = {
  "sign_in.password_refused": "a sign-in failed: wrong password or unknown account",
  "sign_in.link_refused": "a sign-in failed: invalid link or challenge",
  "sign_in.code_refused": "a sign-in failed: wrong second-factor code",
  "sign_in.locked": "a sign-in was refused: too many attempts",
  "sign_in.network_barred": "a network was barred: too many failed sign-ins",
  "password.refused": "a password change was refused: wrong current password",
  "admin.refused": "a request was refused: it needs an administrator",
};

export interface SignInFailure {
  action: keyof typeof LOG_MESSAGES;
  /** What failures are counted by: an address, an account or a network. Only its digest is stored. */
  subject: string;
  /** null: unknown. */
  accountId: string | null;
  source: RequestSource;
  details?: Record<string, unknown>;
}

/**
 * Logs the failure. The audit log gets the 1st, 10th, 100th … of a subject within 15 minutes, so that guessing shows
 * there and cannot fill it. The log has the IP address and not the email address that was typed.
 */
export async function reportFailure(ctx: Context, failure: SignInFailure): Promise<void> {
  const { action, subject, accountId, source, details } = failure;
  const account = accountId && toId("usr", accountId);
  ctx.log.warn(
    { action, ip: source.ip, account, request: source.requestId, ...details },
    LOG_MESSAGES[action],
  );
  const at = ctx.now();
  const failures = await addFailure(ctx.db, {
    kind: `failure: ${action}`,
    subject: digestOf(subject),
    at,
    seconds: WINDOW_SECONDS,
  });
  if (!isPowerOfTen(failures)) return;
  await recordAudit(ctx, ctx.db, {
    actorId: null,
    action,
    ...(account && { target: { type: "user", id: account } }),
    source,
    details: { ...details, failures, windowMinutes: WINDOW_SECONDS / 60 },
  });
}

const isPowerOfTen = (count: number) => /^10*$/.test(String(count));

/** An invalid token names no account, so these failures are counted by network. */
export async function reportInvalidToken<T>(
  ctx: Context,
  source: RequestSource,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code === "INVALID_TOKEN")
      await reportFailure(ctx, {
        action: "sign_in.link_refused",
        subject: networkOf(source.ip),
        accountId: null,
        source,
      });
    throw error;
  }
}
