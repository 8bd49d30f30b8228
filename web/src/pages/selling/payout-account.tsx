import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { initialData } from "../../initial-data.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { payoutAccountQuery } from "../../queries/selling.ts";
import { AccountHealth, AccountRequirements, isDue } from "./account-health.tsx";

const TEST_ACCOUNTS = [
  ["acct_test", "Pays at once"],
  ["acct_test_waits", "Stays on its way"],
  ["acct_test_fails", "Fails"],
  ["acct_test_returns", "Sends the money back"],
] as const;

/** Where payouts go, whether they arrive there, and the way to the payment provider's page. */
export function PayoutAccount() {
  const { data, error, refetch } = useQuery(payoutAccountQuery);
  const [isChoosing, setChoosing] = useState(false);
  const onboard = useAction({
    run: async (_: string, idempotencyKey) => await stoa.payouts.account.onboard({ idempotencyKey }),
    onSuccess: ({ url }) => location.assign(url),
  });
  const isTest = initialData.environment === "test";
  const isComplete = data?.account != null && data.payoutsEnabled !== false && !data.requirements.some(isDue);
  return (
    <section className="beam thin studio-block" aria-label="Payout account">
      <h2 className="h3">Payout account</h2>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows count={1} />}
      {data && (
        <div className="payouts-account">
          <AccountHealth {...data} />
          <button
            type="button"
            className={isComplete ? "btn s" : "btn s primary"}
            disabled={onboard.isPending || onboard.isSuccess}
            onClick={() => onboard.start(new Date().toISOString())}
          >
            {data.account === null
              ? "Set up an account"
              : isComplete
                ? "Change it at the provider"
                : "Complete it"}
          </button>
          <button type="button" className="btn s" onClick={() => setChoosing(true)}>
            {isTest ? "Use a test account" : "Enter an account id"}
          </button>
        </div>
      )}
      {data && <AccountRequirements {...data} />}
      <FormError error={onboard.error} title="The payment provider's page was not opened" />
      {isChoosing && (
        <AccountDialog account={data?.account ?? null} isTest={isTest} onClose={() => setChoosing(false)} />
      )}
    </section>
  );
}

interface AccountDialogProps {
  account: string | null;
  isTest: boolean;
  onClose: () => void;
}

function AccountDialog({ account: present, isTest, onClose }: AccountDialogProps) {
  const client = useQueryClient();
  const [account, setAccount] = useState(present ?? (isTest ? TEST_ACCOUNTS[0][0] : ""));
  const save = useAction({
    run: async (body: { account: string }) => await stoa.payouts.account.set(body),
    onSuccess: async (saved) => {
      client.setQueryData(payoutAccountQuery.queryKey, saved);
      showToast(`Later payouts go to ${saved.account}. You get an email about it.`);
      await client.invalidateQueries({ queryKey: ["studio", "tasks"] });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!save.isSuccess) save.start({ account: account.trim() });
  };
  return (
    <Dialog title={isTest ? "Use a test account" : "Enter an account id"} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <FormError error={save.error} title="The account was not changed" />
        {isTest && (
          <div className="row wrap">
            {TEST_ACCOUNTS.map(([id, label]) => (
              <button
                key={id}
                type="button"
                className={account === id ? "chip on" : "chip"}
                aria-pressed={account === id}
                onClick={() => setAccount(id)}
              >
                {label}
              </button>
            ))}
          </div>
        )}
        <Field label="Account at the payment provider" error={fieldErrors(save.error)["account"]}>
          {(control) => (
            <input
              {...control}
              className="input mono"
              autoComplete="off"
              spellCheck={false}
              required
              maxLength={100}
              value={account}
              onChange={({ target }) => setAccount(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={save.isPending || save.isSuccess}>
            Use this account
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
