import type { ReEvaluation } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { formatCost } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { reEvaluationQuery } from "../../queries/evaluations.ts";
import { fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { useTestedProduct } from "./tested-product.ts";
import { UsdField } from "./usd-field.tsx";

/** The limits within which the service evaluates the product again on the seller's keys. */
export function ReEvaluationLimits() {
  const product = useTestedProduct();
  const { data: settings, error } = useQuery(reEvaluationQuery(product.id));
  return (
    <section className="stack">
      <h3 className="h3">Evaluate again automatically</h3>
      <p className="soft">
        The evaluation on the product’s page is repeated with your keys when a model is deprecated, when its
        price changes{settings?.intervalDays ? `, and every ${settings.intervalDays} days` : ""}. Buyers see
        if the product passes fewer tests than before.
      </p>
      {error && <ErrorStrip error={error} />}
      {settings?.paused && <Paused paused={settings.paused} />}
      {settings && <Limits key={settings.updatedAt} settings={settings} />}
    </section>
  );
}

const Paused = ({ paused }: { paused: NonNullable<ReEvaluation["paused"]> }) => (
  <p className="strip warning">
    {paused.code === "MAX_COST_REACHED"
      ? "Paused: the last evaluation cost more than one may cost. Raise the limit."
      : "Paused: a provider key is gone. Evaluate the product with another key."}
  </p>
);

function Limits({ settings }: { settings: ReEvaluation }) {
  const product = useTestedProduct();
  const client = useQueryClient();
  const [maxCost, setMaxCost] = useState(String(settings.maxCost ?? 1));
  const [monthlyBudget, setMonthlyBudget] = useState(String(settings.monthlyBudget ?? 5));
  const { queryKey } = reEvaluationQuery(product.id);
  const isOn = settings.maxCost !== null;
  const save = useAction({
    run: async () =>
      await stoa.reEvaluations.set(product.id, {
        maxCost: Number(maxCost),
        monthlyBudget: Number(monthlyBudget),
      }),
    onSuccess: (stored) => {
      client.setQueryData(queryKey, stored);
      showToast("The product is evaluated again automatically");
    },
  });
  const turnOff = useAction({
    run: async () => await stoa.reEvaluations.delete(product.id),
    onSuccess: () => client.invalidateQueries({ queryKey }),
    onError: (error) => showError("It was not turned off", error),
  });
  const errors = fieldErrors(save.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.start();
  };
  return (
    <form className="stack narrow-form" onSubmit={submit} noValidate data-own-undo>
      <FormError error={save.error} title="The limits were not saved" />
      <div className="test-pair">
        <UsdField
          label="One evaluation, in USD"
          error={errors["maxCost"]}
          value={maxCost}
          onChange={setMaxCost}
        />
        <UsdField
          label="A month, in USD"
          hint={`Used this month: ${formatCost(settings.used.cost)}`}
          error={errors["monthlyBudget"]}
          value={monthlyBudget}
          onChange={setMonthlyBudget}
        />
      </div>
      <div className="row wrap">
        <button type="submit" className="btn" disabled={save.isPending}>
          {isOn ? "Save the limits" : "Turn on"}
        </button>
        {isOn && (
          <button
            type="button"
            className="btn quiet"
            disabled={turnOff.isPending}
            onClick={() => turnOff.start()}
          >
            Turn off
          </button>
        )}
      </div>
    </form>
  );
}
