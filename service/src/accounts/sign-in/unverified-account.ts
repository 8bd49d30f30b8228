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
  /** `magic-link`, `github` or `google`. */
  by: string;
  source: RequestSource;
}

/**
 * The first proof of the account's email address. Earlier credentials may belong to a stranger who waits for the owner
 * (pre-account hijack), so all credentials and sessions are removed.
 */
export async function resetUnverifiedAccount(
  ctx: Context,
  tx: Tx,
  { id }: SignInAccount,
  { by, source }: EmailProof,
): Promise<void> {
  // Of two concurrent proofs, the second must not remove what the owner set up after the first.
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
