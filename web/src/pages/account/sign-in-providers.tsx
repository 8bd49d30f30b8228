import type { SignInProviders as Response } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { Time } from "../../components/time.tsx";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { signInProvidersQuery } from "../../queries/account.ts";

type Provider = Response["providers"][number];

const NAMES: Record<Provider["provider"], string> = { github: "GitHub", google: "Google" };

/** Nothing where the installation offers no provider and none is linked. */
export function SignInProviders() {
  const { data } = useSuspenseQuery(signInProvidersQuery);
  const [unlinking, setUnlinking] = useState<Provider["provider"] | null>(null);
  const providers = data.providers.filter(({ available, linkedAt }) => available || linkedAt !== null);
  if (providers.length === 0) return null;
  return (
    <section className="beam thin">
      <h2 className="h3">Sign-in providers</h2>
      <ul className="rows">
        {providers.map((provider) => (
          <ProviderRow key={provider.provider} {...provider} onUnlink={setUnlinking} />
        ))}
      </ul>
      {unlinking && <Unlink provider={unlinking} onClose={() => setUnlinking(null)} />}
    </section>
  );
}

function ProviderRow({
  provider,
  linkedAt,
  onUnlink,
}: Provider & { onUnlink: (provider: Provider["provider"]) => void }) {
  const name = NAMES[provider];
  return (
    <li>
      <div className="grow">
        <b>{name}</b>
        <p className="sm soft">
          {linkedAt === null ? (
            `To link it, sign in with a ${name} account that has your email address.`
          ) : (
            <>
              Signs you in since <Time iso={linkedAt} />
            </>
          )}
        </p>
      </div>
      {linkedAt !== null && (
        <button
          type="button"
          className="btn s"
          aria-label={`Unlink ${name}`}
          onClick={() => onUnlink(provider)}
        >
          Unlink
        </button>
      )}
    </li>
  );
}

function Unlink({ provider, onClose }: { provider: Provider["provider"]; onClose: () => void }) {
  const client = useQueryClient();
  const name = NAMES[provider];
  const unlink = useAction({
    run: async () => await stoa.account.signInProviders.unlink(provider),
    onSuccess: () => {
      onClose();
      showToast(`${name} no longer signs you in`);
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: signInProvidersQuery.queryKey }),
        client.invalidateQueries({ queryKey: ["sessions"] }),
      ]),
  });
  return (
    <ConfirmDialog
      title={`Unlink ${name}?`}
      action={`Unlink ${name}`}
      keep="Keep it"
      isPending={unlink.isPending}
      onConfirm={() => unlink.start()}
      onClose={onClose}
    >
      <p className="soft">
        Your other sessions that began with {name} end. You can still sign in by an emailed link.
      </p>
      <FormError error={unlink.error} title={`${name} was not unlinked`} />
    </ConfirmDialog>
  );
}
