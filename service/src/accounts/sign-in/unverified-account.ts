import type { Context, RequestSource } from "../../core/context.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { revokeAllKeys } from "../api-keys/keys.ts";
import { markEmailVerified, type SignInAccount } from "../people/credentials.ts";
import { unlinkIdentities } from "../people/identities.ts";
import { endSessions } from "../sessions/sessions.ts";
import { removeAuthenticator } from "../two-factor/second-factor.ts";
import { deleteChallengesOfUser } from "./queries.ts";

interface EmailProof {
  /** What proved it: `magic-link`, `github`, `google`. */
  by: string;
  source: RequestSource;
}

/**
 * The first proof of an account's mailbox. Whatever was set up before it may be a stranger's, who waits for the owner to
 * come and fill the account (pre-account hijack): password, second factor, linked identities, sessions, keys and half-done sign-ins are gone.
 */
export async function resetUnverifiedAccount(
  ctx: Context,
  tx: Tx,
  { id }: SignInAccount,
  { by, source }: EmailProof,
): Promise<void> {
  // Of two proofs at once the second would wipe what the owner set up after the first.
  if (!(await markEmailVerified(ctx, tx, id))) return;
  const sessionsEnded = await endSessions(ctx, tx, id);
  const keysRevoked = await revokeAllKeys(ctx, tx, id);
  await unlinkIdentities(tx, id);
  await removeAuthenticator(tx, id);
  await deleteChallengesOfUser(tx, id);
  await recordAudit(ctx, tx, {
    actorId: id,
    action: "mailbox.proven",
    source,
    details: { by, sessionsEnded, keysRevoked },
  });
}
