import type { Account, UpdateAccount } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { stoa } from "../../api.ts";
import { CheckRow } from "../../components/check-row.tsx";
import { Field } from "../../components/field.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { accountQuery, useAccount } from "../../session.ts";

const WINDOWS: readonly Account["refundDays"][] = [0, 7, 14, 30];

/** What the seller promises buyers, and what the rules decide for the seller. Each choice is stored at once. */
export function RefundRules() {
  const client = useQueryClient();
  const account = useAccount();
  const save = useAction({
    run: async (change: UpdateAccount) => await stoa.account.update(change),
    onSuccess: (saved) => {
      client.setQueryData(accountQuery.queryKey, saved);
      showToast("Refund rule saved");
    },
    onError: (error) => showError("The refund rule was not saved", error),
  });
  if (!account) return null;
  const { refundDays, refundFailedRuns } = account;
  return (
    <section className="beam thin stack narrow-form">
      <h2 className="h3">Refund rules</h2>
      <Field
        label="Refund window"
        hint="For later purchases. Orders keep the window that they were made with."
      >
        {(control) => (
          <select
            {...control}
            className="input"
            value={refundDays}
            disabled={save.isPending}
            onChange={({ target }) =>
              save.start({ refundDays: Number(target.value) as Account["refundDays"] })
            }
          >
            {WINDOWS.map((days) => (
              <option key={days} value={days}>
                {days === 0 ? "No refunds" : `${days} days`}
              </option>
            ))}
          </select>
        )}
      </Field>
      <CheckRow
        isChecked={refundFailedRuns}
        isDisabled={save.isPending}
        onChange={(isChecked) => save.start({ refundFailedRuns: isChecked })}
      >
        Approve requests at once if a prompt fails more often for the buyer than for others
        <br />
        <span className="soft sm">
          At least five runs, with 95 % intervals that do not overlap. Failures of the buyer’s key do not
          count.
        </span>
      </CheckRow>
      <ShowAsCode
        curl={curlOf("PATCH", "/account", { refundDays, refundFailedRuns })}
        sdk={`await stoa.account.update({ refundDays: ${refundDays}, refundFailedRuns: ${refundFailedRuns} });`}
      />
    </section>
  );
}
