import type { ProductDetail } from "@stoa/sdk";
import { Field } from "../field.tsx";
import type { Limits, PromptForm } from "./prompt-form.ts";
import { VersionField } from "./target-fields.tsx";

interface LimitFieldsProps {
  product: ProductDetail;
  form: PromptForm;
  errors: Record<string, string>;
  /** Compared runs have a version each. */
  hasVersion?: boolean;
}

const FIELDS: { name: keyof Limits; label: string; hint: string }[] = [
  { name: "maxTokens", label: "Longest answer, in tokens", hint: "A longer answer is cut" },
  {
    name: "maxCost",
    label: "Highest cost in USD",
    hint: "The answer is cut before the run can cost more",
  },
  { name: "temperature", label: "Temperature, 0 to 2", hint: "Higher: more variety. Some models refuse it" },
];

/** What few runs need. */
export function LimitFields({ product, form, errors, hasVersion = true }: LimitFieldsProps) {
  const { limits, limitErrors } = form;
  const isUsed = Object.values(limits).some((value) => value !== "");
  const hasError = Object.keys(limitErrors).length > 0;
  return (
    <details className="run-limits" open={isUsed || hasError || undefined}>
      <summary className="m">{hasVersion ? "Version and limits" : "Limits"}</summary>
      <div className="stack">
        {hasVersion && (
          <VersionField
            product={product}
            value={form.target.version}
            error={errors["options.version"]}
            onChange={(version) => form.setTarget({ version })}
          />
        )}
        {FIELDS.map(({ name, label, hint }) => (
          <Field key={name} label={label} hint={hint} error={limitErrors[name] ?? errors[`options.${name}`]}>
            {(control) => (
              <input
                {...control}
                className="input num"
                inputMode="decimal"
                autoComplete="off"
                value={limits[name]}
                onChange={(event) => form.setLimits({ [name]: event.target.value.trim() })}
              />
            )}
          </Field>
        ))}
      </div>
    </details>
  );
}
