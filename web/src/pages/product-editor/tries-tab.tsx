import type { ProductDetail, SetTryOut, TryOut } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useCallback, useState } from "react";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Fact } from "../../components/fact.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { defaultKey, type Target, useKeyChoices } from "../../components/running/run-target.ts";
import { TargetFields } from "../../components/running/target-fields.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCost, formatCount, formatMoney } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { describeRunFailure } from "../../lib/run-errors.ts";
import { productPath } from "../../lib/slug.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { tryOutQuery } from "../../queries/try-outs.ts";
import { useEditor } from "./editor-context.tsx";

/** Of the service: each answer is compared with all of the prompt. */
const MOST_CONTENT = 20_000;

/** Whether and how visitors may run the product before they buy it, and what that has cost. */
export default function TriesTab() {
  const { product } = useEditor();
  const isOn = product.tryOut !== null;
  const { data, error, refetch } = useQuery({ ...tryOutQuery(product.id), enabled: isOn });
  if (product.status !== "published" && !isOn)
    return (
      <EmptyState title="Visitors can try products that are on sale">
        Publish the product. Then you can let visitors run it with their own input, on your provider key and
        within your limits.
      </EmptyState>
    );
  if (error) return <ErrorStrip error={error} onRetry={() => void refetch()} />;
  if (data === undefined && isOn) return <SkeletonRows count={4} />;
  return <TrySettings key={data?.updatedAt ?? "off"} product={product} tryOut={data ?? null} />;
}

interface TrySettingsProps {
  product: ProductDetail;
  tryOut: TryOut | null;
}

function TrySettings({ product, tryOut }: TrySettingsProps) {
  const isTooLong = (product.content ?? "").length > MOST_CONTENT;
  return (
    <div className="stack form">
      <section className="beam thin stack">
        <div className="row between wrap">
          <h2 className="h3">Tries</h2>
          {tryOut ? <StatusTag tone="good">On</StatusTag> : <StatusTag tone="neutral">Off</StatusTag>}
        </div>
        <p className="soft">
          Visitors run the product with their own input before they buy it. They get the answer, never the
          prompt, and your provider key pays. Answers that repeat the prompt are withheld; translations and
          summaries of it are not recognized.
        </p>
        {isTooLong && (
          <p className="strip warning">
            <AlertIcon size={20} />
            <span className="grow">
              <b>This prompt cannot be tried.</b> It is longer than {formatCount(MOST_CONTENT)} characters, so
              that answers cannot be compared with it.
            </span>
          </p>
        )}
        {tryOut && <TryUse product={product} tryOut={tryOut} />}
      </section>
      {!isTooLong && <TryLimits product={product} tryOut={tryOut} />}
    </div>
  );
}

/** How often it was tried, and what that cost. */
function TryUse({ product, tryOut }: { product: ProductDetail; tryOut: TryOut }) {
  const { used, maxPerDay, monthlyBudget, isKeyStored, provider } = tryOut;
  const { today, month, lastFailure } = used;
  return (
    <>
      {!isKeyStored && (
        <p className="strip bad" role="alert">
          <AlertIcon size={20} />
          <span className="grow">
            <b>The key of {providerName(provider)} was deleted, so visitors cannot try the product.</b> Choose
            another key.
          </span>
        </p>
      )}
      <dl className="try-use">
        <Fact term="Tries today">
          <span className="num">
            {formatCount(today.tries)} of {formatCount(maxPerDay)}
          </span>
        </Fact>
        <Fact term="Of these">
          <span className="num">
            {formatCount(today.completed)} answered, {formatCount(today.withheld)} withheld,{" "}
            {formatCount(today.failed)} failed
          </span>
        </Fact>
        <Fact term="This month">
          <span className="num">
            {formatCount(month.tries)} {month.tries === 1 ? "try" : "tries"}, {formatCost(month.cost)} of{" "}
            {formatMoney(monthlyBudget, "USD")}
          </span>
        </Fact>
        {lastFailure && (
          <Fact term="Last failure">
            {describeFailure(lastFailure.code, provider)} <Time iso={lastFailure.at} className="soft" />
          </Fact>
        )}
      </dl>
      <p className="row wrap">
        <Link to="/p/$slug" params={{ slug: productPath(product) }} className="link">
          See it as visitors do
        </Link>
      </p>
    </>
  );
}

/** Visitors learn nothing of it. */
function describeFailure(code: string, provider: string): string {
  const { fact, advice } = describeRunFailure({ code, message: `A try failed: ${code}.` }, { provider });
  return `${fact} ${advice}`.trim();
}

interface LimitsForm {
  maxPerDay: string;
  maxPerVisitorPerDay: string;
  monthlyBudget: string;
  maxOutputTokens: string;
}

const START: LimitsForm = {
  maxPerDay: "50",
  maxPerVisitorPerDay: "3",
  monthlyBudget: "5",
  maxOutputTokens: "400",
};

const FIELDS: { name: keyof LimitsForm; label: string; hint: string }[] = [
  { name: "maxPerVisitorPerDay", label: "Tries of one visitor a day", hint: "From 1 to 100" },
  { name: "maxPerDay", label: "Tries of all visitors a day", hint: "From 1 to 10,000" },
  {
    name: "monthlyBudget",
    label: "At most a month, in USD",
    hint: "A try that may exceed it is refused. Models without a known price cost nothing here",
  },
  {
    name: "maxOutputTokens",
    label: "Longest answer, in tokens",
    hint: "From 16 to 4,000. A longer answer is cut",
  },
];

const toForm = (tryOut: TryOut): LimitsForm => ({
  maxPerDay: String(tryOut.maxPerDay),
  maxPerVisitorPerDay: String(tryOut.maxPerVisitorPerDay),
  monthlyBudget: String(tryOut.monthlyBudget),
  maxOutputTokens: String(tryOut.maxOutputTokens),
});

const toInput = ({ keyId, model }: Target, form: LimitsForm): SetTryOut => ({
  apiKeyId: keyId,
  model: model === "" ? null : model,
  maxPerDay: Number(form.maxPerDay),
  maxPerVisitorPerDay: Number(form.maxPerVisitorPerDay),
  monthlyBudget: Number(form.monthlyBudget),
  maxOutputTokens: Number(form.maxOutputTokens),
});

function TryLimits({ product, tryOut }: TrySettingsProps) {
  const client = useQueryClient();
  const keys = useKeyChoices(product.compatibility);
  const [form, setForm] = useState(() => (tryOut ? toForm(tryOut) : START));
  const [target, setTarget] = useState<Target>(() => ({
    keyId: tryOut?.isKeyStored ? tryOut.apiKeyId : (defaultKey(keys)?.id ?? ""),
    model: tryOut?.model ?? "",
    version: product.version,
  }));
  const changeTarget = useCallback(
    (change: Partial<Target>) => setTarget((old) => ({ ...old, ...change })),
    [],
  );
  const input = toInput(target, form);
  const store = (stored: TryOut | null) => {
    client.setQueryData(tryOutQuery(product.id).queryKey, stored);
    void client.invalidateQueries({ queryKey: ["product", product.id] });
  };
  const save = useAction({
    run: async (next: SetTryOut) => await stoa.tryOuts.set(product.id, next),
    onSuccess: (stored) => {
      store(stored);
      showToast(tryOut ? "Limits saved" : "Visitors can try the product now");
    },
  });
  const turnOff = useAction({
    run: async () => await stoa.tryOuts.delete(product.id),
    onSuccess: () => {
      store(null);
      showToast("Visitors can no longer try the product", { undo: () => save.start(input) });
    },
    onError: (error) => showError("Tries are still on", error),
  });
  const errors = fieldErrors(save.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (target.keyId !== "") save.start(input);
  };
  return (
    <form className="stack form editor-form" onSubmit={submit} noValidate data-own-undo>
      <FormError error={save.error} title={tryOut ? "The limits were not saved" : "Tries are still off"} />
      <TargetFields
        product={product}
        keys={keys}
        target={target}
        onChange={changeTarget}
        errors={{
          ...(errors["apiKeyId"] && { apiKeyId: errors["apiKeyId"] }),
          ...(errors["model"] && { "options.model": errors["model"] }),
        }}
      />
      <div className="editor-pair">
        {FIELDS.map(({ name, label, hint }) => (
          <Field key={name} label={label} hint={hint} error={errors[name]}>
            {(control) => (
              <input
                {...control}
                className="input num"
                inputMode="decimal"
                autoComplete="off"
                value={form[name]}
                onChange={(event) => setForm({ ...form, [name]: event.target.value.trim() })}
              />
            )}
          </Field>
        ))}
      </div>
      <div className="row wrap">
        <button type="submit" className="btn primary" disabled={target.keyId === "" || save.isPending}>
          {tryOut ? "Save the limits" : "Let visitors try it"}
        </button>
        {tryOut && (
          <button
            type="button"
            className="btn danger"
            disabled={turnOff.isPending}
            onClick={() => turnOff.start()}
          >
            Turn tries off
          </button>
        )}
      </div>
      <div className="flush">
        <ShowAsCode
          curl={curlOf("PUT", `/products/${product.id}/try-out`, input)}
          sdk={`await stoa.tryOuts.set("${product.id}", ${JSON.stringify(input)});`}
        />
      </div>
    </form>
  );
}
