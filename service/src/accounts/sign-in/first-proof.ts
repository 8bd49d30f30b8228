import type { Context, RequestSource } from "../../core/context.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { revokeAllKeys } from "../api-keys/keys.ts";
import { type Entrant, proveMailbox } from "../people/credentials.ts";
import { unlinkIdentities } from "../people/identities.ts";
import { endSessions } from "../sessions/sessions.ts";
import { forgetAuthenticator } from "../two-factor/second-factor.ts";
import { deleteChallengesOf } from "./queries.ts";

interface Proof {
  /** What proved it: `magic-link`, `github`, `google`. */
  by: string;
  source: RequestSource;
}

/**
 * The first proof of an account's mailbox. Whatever was set up before it may be a stranger's, who waits for the owner to
 * come and fill the account (pre-account hijack): password, second factor, linked identities, sessions, keys and half-done sign-ins are gone.
 */
export async function wipeUnproven(
  ctx: Context,
  tx: Tx,
  { id }: Entrant,
  { by, source }: Proof,
): Promise<void> {
  // Of two proofs at once the second would wipe what the owner set up after the first.
  if (!(await proveMailbox(ctx, tx, id))) return;
  const sessionsEnded = await endSessions(ctx, tx, id);
  const keysRevoked = await revokeAllKeys(ctx, tx, id);
  await unlinkIdentities(tx, id);
  await forgetAuthenticator(tx, id);
  await deleteChallengesOf(tx, id);
  await record(ctx, tx, {
    actorId: id,
    action: "mailbox.proven",
    source,
    details: { by, sessionsEnded, keysRevoked },
  });
}
