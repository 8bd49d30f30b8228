import { identityProviders, type SignInProviders } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { listLinkedProviders, unlinkProvider } from "../people/identities.ts";
import { toUserId } from "../people/users.ts";
import { endSessions, mustBeActiveSession } from "../sessions/sessions.ts";
import { identityUnlinkedEmail } from "./social-emails.ts";
import { providerLabels } from "./social-problem.ts";

export async function listOwnProviders(ctx: Context, { userId }: SessionCaller): Promise<SignInProviders> {
  const linked = await listLinkedProviders(ctx.db, userId);
  return {
    providers: identityProviders.map((provider) => ({
      provider,
      available: ctx.integrations.identityProviders[provider] !== null,
      linkedAt: linked.get(provider)?.toISOString() ?? null,
    })),
  };
}

/** The account keeps a way to sign in: links go to its email address. */
export const unlinkOwnProvider = (
  ctx: Context,
  caller: SessionCaller,
  name: string,
  source: RequestSource,
) => {
  const provider = identityProviders.find((one) => one === name);
  if (!provider) throw new ApiError("SIGN_IN_PROVIDER_NOT_FOUND");
  return ctx.db.transaction().execute(async (tx) => {
    const { userId } = caller;
    const label = providerLabels[provider];
    if (!(await unlinkProvider(tx, userId, provider))) throw new ApiError("SIGN_IN_PROVIDER_NOT_FOUND");
    await mustBeActiveSession(tx, caller);
    const sessionsEnded = await endSessions(ctx, tx, userId, { via: provider, but: caller.sessionId });
    const details = { provider, sessionsEnded };
    await recordAudit(ctx, tx, { actorId: userId, action: "identity.unlinked", source, details });
    const about = { userId, subjectId: toUserId(userId), occurrence: ctx.newId() };
    await notifyAccount(
      ctx,
      tx,
      { ...about, kind: "identity.unlinked", data: { provider: label } },
      identityUnlinkedEmail(label),
    );
    return { provider, sessionsEnded };
  });
};
