import { sealedSigningKeys } from "./accounts/oauth/signing-keys.ts";
import { sealedAuthenticators } from "./accounts/two-factor/second-factor.ts";
import { sealedSalts } from "./catalog/search/views.ts";
import type { Context } from "./core/context.ts";
import { firstOf } from "./core/required.ts";
import { sealedEvents } from "./events/outbox/outbox.ts";
import { sealedSecrets } from "./events/webhooks/secrets.ts";
import { sealedJudgmentTexts, sealedResultTexts } from "./execution/evaluations/results.ts";
import { sealedShareTokens } from "./execution/executions/shares.ts";
import { sealedTexts } from "./execution/executions/texts.ts";
import { sealedKeys } from "./execution/provider-keys/provider-keys.ts";
import { sealedRunReceiptKeys } from "./execution/run-receipts/signing-keys.ts";
import { sealedOutputs, sealedResults, sealedStarts } from "./execution/workflow-runs/sealed-texts.ts";
import { updateInstallationKey } from "./platform/db/installation.ts";
import { countSealed, type Rewrapped, rewrapColumn } from "./platform/db/sealed-columns.ts";
import { sealedEmails } from "./platform/email/email-queue.ts";
import { sealedBodies, sealedResources } from "./platform/http/idempotency.ts";

/** All that the vault keeps in the database; cookies that it sealed go by themselves. */
export const sealedColumns = [
  sealedAuthenticators,
  sealedBodies,
  sealedEvents,
  sealedResources,
  sealedJudgmentTexts,
  sealedKeys,
  sealedEmails,
  sealedOutputs,
  sealedRunReceiptKeys,
  sealedResults,
  sealedResultTexts,
  sealedSalts,
  sealedSecrets,
  sealedShareTokens,
  sealedSigningKeys,
  sealedStarts,
  sealedTexts,
];

/** For rows that somebody held when their turn was. */
const MAX_PASSES = 3;

export interface Rotation {
  /** The primary key, which holds all that could be rewrapped. */
  key: string;
  rewrapped: number;
  /** Texts that are still under each of the other keys, those of the ring first. */
  others: { key: string; texts: number; isInRing: boolean }[];
}

/**
 * Puts every sealed text under the primary key while services run. Killed, it begins anew with what is left. When
 * nothing is left, the installation belongs to the primary key, and the others may go.
 */
export async function rotateKeyring({ db, vault }: Pick<Context, "db" | "vault">): Promise<Rotation> {
  let rewrapped = 0;
  let lost = 0;
  for (let round = 1; round <= MAX_PASSES; round++) {
    const done = await rewrapAllColumns({ db, vault });
    rewrapped += done.rewrapped;
    lost = done.refused;
    if (done.rewrapped === 0) break;
  }
  const others = await countUnderOtherKeys({ db, vault });
  const left = others.reduce((sum, { texts }) => sum + texts, 0);
  // What cannot be opened now can be opened by no key.
  if (left === lost) await updateInstallationKey(db, vault.fingerprint);
  return { key: firstOf(vault.keyIds), rewrapped, others };
}

async function rewrapAllColumns({ db, vault }: Pick<Context, "db" | "vault">): Promise<Rewrapped> {
  const all = { rewrapped: 0, refused: 0 };
  for (const column of sealedColumns) {
    const { rewrapped, refused } = await rewrapColumn(db, vault, column);
    all.rewrapped += rewrapped;
    all.refused += refused;
  }
  return all;
}

async function countUnderOtherKeys({
  db,
  vault,
}: Pick<Context, "db" | "vault">): Promise<Rotation["others"]> {
  const counts = await countSealed(db, sealedColumns);
  const [primary, ...rest] = vault.keyIds;
  const lost = [...counts.keys()].filter((key) => key !== primary && !rest.includes(key));
  return [...rest, ...lost].map((key) => ({
    key,
    texts: counts.get(key) ?? 0,
    isInRing: rest.includes(key),
  }));
}
