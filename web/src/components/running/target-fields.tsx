import "./run-form.css";
import type { AiModel, ProductDetail, ScoreCard } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { formatMoney } from "../../lib/format.ts";
import { describeModelPrice } from "../../lib/model-price.ts";
import { providerName } from "../../lib/providers.ts";
import { rangeOf, wholePercent } from "../../lib/rates.ts";
import { versionsQuery } from "../../queries/market.ts";
import { keysQuery } from "../../queries/running.ts";
import { Field } from "../field.tsx";
import { PlusIcon } from "../icons.tsx";
import { KeyDialog } from "./key-dialog.tsx";
import { defaultModel, type KeyChoice, keyLabel, type Target, useModels } from "./run-target.ts";

interface TargetFieldsProps {
  product: ProductDetail;
  keys: KeyChoice[];
  target: Target;
  onChange: (change: Partial<Target>) => void;
  errors?: Record<string, string>;
  /** Whose rates stand beside the models. */
  scoreCard?: ScoreCard | null;
  /** What the model answers with; text by default. */
  mode?: AiModel["mode"];
}

/** Provider key and model of a run. */
export function TargetFields(props: TargetFieldsProps) {
  const { product, keys, target, onChange, errors = {}, scoreCard = null, mode = "chat" } = props;
  const key = keys.find(({ id }) => id === target.keyId);
  const models = useModels(key?.provider, mode);
  const standard = key ? defaultModel(product, key.provider, models) : "";
  // The default is known once the models have loaded.
  useEffect(() => {
    if (target.model === "" && standard !== "") onChange({ model: standard });
  }, [target.model, standard, onChange]);
  return (
    <>
      <KeyField
        label="Provider key"
        providers={product.compatibility}
        keys={keys}
        value={target.keyId}
        error={errors["apiKeyId"]}
        onChange={(keyId) => {
          const next = keys.find(({ id }) => id === keyId);
          onChange({ keyId, ...(next?.provider !== key?.provider && { model: "" }) });
        }}
      />
      {key && (
        <ModelField
          key={key.provider}
          models={models}
          standard={standard}
          provider={key.provider}
          value={target.model}
          hint={scoreCard && describeRate(scoreCard, key.provider, target.model)}
          error={errors["options.model"]}
          onChange={(model) => onChange({ model })}
        />
      )}
    </>
  );
}

/** null: this model was not measured. */
function describeRate({ models, version }: ScoreCard, provider: string, model: string): string | null {
  const score = models.find((one) => one.provider === provider && one.model === model);
  if (!score?.rate) return null;
  const practice = score.isSandbox ? " in practice runs" : "";
  return `Passed ${wholePercent(score.rate.value)} % (${rangeOf(score.rate, score.n)}) of the seller’s tests${practice}, version ${version}`;
}

interface KeyFieldProps {
  label: string;
  providers: string[];
  keys: KeyChoice[];
  value: string;
  error?: string | undefined;
  onChange: (keyId: string) => void;
}

export function KeyField({ label, providers, keys, value, error, onChange }: KeyFieldProps) {
  const client = useQueryClient();
  const [dialog, setDialog] = useState<"add" | "replace" | null>(null);
  const chosen = keys.find(({ id }) => id === value);
  const stored = client.getQueryData(keysQuery.queryKey)?.find(({ id }) => id === value);
  const isInvalid = chosen?.status === "invalid";
  const hints = [
    chosen?.provider === "sandbox" && "For trying out: the answer is invented, and costs nothing.",
    stored?.monthlyBudget && `Monthly budget ${formatMoney(stored.monthlyBudget, "USD")}`,
  ].filter(Boolean);
  return (
    <div className="stack key-field">
      {keys.length === 0 ? (
        <div className="strip warning no-key">
          <div className="grow stack">
            <b>{label}: you have none yet</b>
            <span>This runs with your own key of {listNames(providers)}. Stoa charges nothing for runs.</span>
            <div>
              <button type="button" className="btn" onClick={() => setDialog("add")}>
                <PlusIcon /> Add a provider key
              </button>
            </div>
          </div>
        </div>
      ) : (
        <Field
          label={label}
          error={
            error ??
            (isInvalid ? `${providerName(chosen.provider)} refused this key at the last check.` : undefined)
          }
          hint={hints.length > 0 && hints.join(" ")}
        >
          {(control) => (
            <select
              {...control}
              className="input"
              value={value}
              onChange={(event) => onChange(event.target.value)}
            >
              {!chosen && <option value={value}>Choose a key</option>}
              {keys.map((key) => (
                <option key={key.id} value={key.id}>
                  {keyLabel(key)}
                  {key.status === "invalid" ? " (refused)" : ""}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {keys.length > 0 && (
        <div className="row wrap key-actions">
          <button type="button" className="btn quiet s" onClick={() => setDialog("add")}>
            <PlusIcon /> Add a key
          </button>
          {isInvalid && (
            <button type="button" className="btn s" onClick={() => setDialog("replace")}>
              Replace this key
            </button>
          )}
        </div>
      )}
      {dialog !== null && (
        <KeyDialog
          providers={providers}
          replaced={dialog === "replace" ? stored : undefined}
          onClose={() => setDialog(null)}
          onDone={({ id }) => {
            setDialog(null);
            onChange(id);
          }}
        />
      )}
    </div>
  );
}

const listNames = (providers: string[]) =>
  new Intl.ListFormat("en", { type: "disjunction" }).format(providers.map(providerName));

interface ModelFieldProps {
  models: AiModel[];
  /** What runs if none is named. */
  standard: string;
  provider: string;
  value: string;
  hint: string | null;
  error?: string | undefined;
  onChange: (model: string) => void;
}

const OTHER = "\u0000other";

function ModelField({ models, standard, provider, value, hint, error, onChange }: ModelFieldProps) {
  const isListed = value === standard || models.some(({ id }) => id === value);
  const [isOther, setOther] = useState(value !== "" && !isListed && models.length > 0);
  const isTyped = isOther || (models.length === 0 && standard === "" && provider !== "sandbox");
  const others = models.filter(({ id }) => id !== standard);
  const standardModel = models.find(({ id }) => id === standard);
  return (
    <div className="stack key-field">
      <Field label="Model" hint={hint} error={isTyped ? undefined : error}>
        {(control) => (
          <select
            {...control}
            className="input"
            value={isTyped ? OTHER : value}
            onChange={(event) => {
              const isNowOther = event.target.value === OTHER;
              setOther(isNowOther);
              if (!isNowOther) onChange(event.target.value);
            }}
          >
            {standard !== "" && (
              <option value={standard}>
                {standard}
                {priceLabel(standardModel)}
              </option>
            )}
            {!isListed && !isTyped && <option value={value}>{value}</option>}
            {others.map((model) => (
              <option key={model.id} value={model.id}>
                {model.id}
                {priceLabel(model)}
              </option>
            ))}
            <option value={OTHER}>Another model…</option>
          </select>
        )}
      </Field>
      {isTyped && (
        <Field label="Name of the model" error={error} hint={`As ${providerName(provider)} calls it`}>
          {(control) => (
            <input
              {...control}
              className="input mono"
              maxLength={200}
              autoComplete="off"
              spellCheck={false}
              value={value}
              onChange={(event) => onChange(event.target.value)}
            />
          )}
        </Field>
      )}
    </div>
  );
}

function priceLabel(model: AiModel | undefined): string {
  const price = describeModelPrice(model);
  return price && ` (${price})`;
}

interface VersionFieldProps {
  product: ProductDetail;
  value: string;
  error?: string | undefined;
  onChange: (version: string) => void;
}

/** The versions that the account may run. */
export function VersionField({ product, value, error, onChange }: VersionFieldProps) {
  const { data } = useQuery(versionsQuery(product.id));
  const versions = data?.data.filter(({ readable }) => readable).map(({ version }) => version) ?? [];
  const shown = versions.includes(value) ? versions : [value, ...versions];
  return (
    <Field label="Version" error={error}>
      {(control) => (
        <select
          {...control}
          className="input"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        >
          {shown.map((version) => (
            <option key={version} value={version}>
              {version}
              {version === product.version ? " (newest)" : ""}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
