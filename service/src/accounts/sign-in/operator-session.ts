import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { findSignInAccount } from "../people/credentials.ts";
import { toUserId } from "../people/users.ts";
import { startSession } from "../sessions/sessions.ts";

const COMMAND_LINE = { ip: "127.0.0.1", userAgent: "stoa-server", requestId: "" };

/** It has no second factor, so a stolen shell gets no admin rights. */
export async function startOperatorSession(ctx: Context, userId: string): Promise<string> {
  const user = await findSignInAccount(ctx.db, userId);
  if (!user) throw new ApiError("INVALID_STATE", "This account is banned or closed.");
  return ctx.db.transaction().execute(async (tx) => {
    await recordAudit(ctx, tx, {
      actorId: null,
      action: "session.started",
      target: { type: "user", id: toUserId(userId) },
      source: null,
      details: { via: "operator" },
    });
    return startSession(ctx, tx, { user, via: "operator", secondFactor: false, source: COMMAND_LINE });
  });
}
