import type { NewCallbackSecret } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { SecretOnce } from "../../components/secret-once.tsx";
import { Time } from "../../components/time.tsx";
import { formatMoment } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { callbackSecretQuery } from "../../queries/api-access.ts";

/** The secret that signs callbacks of runs, which belong to no webhook endpoint. */
export function CallbackSecret() {
  const { data } = useSuspenseQuery(callbackSecretQuery);
  const [isRenewing, setRenewing] = useState(false);
  const { activatedAt, oldSecretUntil } = data;
  return (
    <section className="beam thin try">
      <h2 className="h3">Callback secret</h2>
      <p className="soft">
        It signs what Stoa sends to the <code>webhookUrl</code> of your runs, as a webhook's secret does.{" "}
        {activatedAt === null ? (
          "You have none yet."
        ) : (
          <>
            In use since <Time iso={activatedAt} isDay />.
          </>
        )}{" "}
        {oldSecretUntil !== null && `The previous one also signs until ${formatMoment(oldSecretUntil)}.`}
      </p>
      <button type="button" className="btn" onClick={() => setRenewing(true)}>
        {activatedAt === null ? "Create secret" : "New secret"}
      </button>
      {isRenewing && <RenewSecret isFirst={activatedAt === null} onClose={() => setRenewing(false)} />}
    </section>
  );
}

function RenewSecret({ isFirst, onClose }: { isFirst: boolean; onClose: () => void }) {
  const client = useQueryClient();
  const [renewed, setRenewed] = useState<NewCallbackSecret | null>(null);
  const rotate = useAction({
    run: async (_, idempotencyKey) => await stoa.account.callbackSecret.rotate({ idempotencyKey }),
    onSuccess: setRenewed,
    onSettled: () => client.invalidateQueries({ queryKey: callbackSecretQuery.queryKey }),
  });
  if (renewed)
    return (
      <SecretOnce
        title="Your callback secret, shown once"
        secret={renewed.secret}
        confirmation="I saved the secret in a safe place"
        onDone={onClose}
      >
        <p>Verify signatures with it. If you lose it, create another.</p>
      </SecretOnce>
    );
  return (
    <ConfirmDialog
      title={isFirst ? "Create a callback secret?" : "Create a new callback secret?"}
      action="Create secret"
      keep={isFirst ? "Not now" : "Keep the old one"}
      isPending={rotate.isPending}
      onConfirm={() => rotate.start()}
      onClose={onClose}
    >
      <p className="soft">
        {isFirst
          ? "It signs callbacks from now on, and is shown once."
          : "The old one also signs for 24 hours, so that your receiver can change over."}
      </p>
      <FormError error={rotate.error} title="The secret was not created" />
    </ConfirmDialog>
  );
}
