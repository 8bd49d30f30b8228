import { useQuery } from "@tanstack/react-query";
import type { InputHTMLAttributes } from "react";
import { Field } from "../../components/field.tsx";
import type { DiscountFields } from "../../lib/discounts.ts";
import { productNamesQuery } from "../../queries/studio.ts";

interface DiscountFormProps {
  fields: DiscountFields;
  errors: Record<string, string>;
  onFields: (fields: DiscountFields) => void;
}

export function DiscountForm({ fields, errors, onFields }: DiscountFormProps) {
  const { data: products } = useQuery(productNamesQuery);
  const set = (change: Partial<DiscountFields>) => onFields({ ...fields, ...change });
  const text = (name: keyof DiscountFields, more: InputHTMLAttributes<HTMLInputElement> = {}) => ({
    className: "input",
    autoComplete: "off",
    value: fields[name],
    onChange: ({ target }: { target: HTMLInputElement }) => set({ [name]: target.value }),
    ...more,
  });
  const isPercent = fields.kind === "percent";
  return (
    <>
      <Field label="Code" hint="Buyers type it, in any case." error={errors["code"]}>
        {(control) => <input {...control} {...text("code", { className: "input mono", maxLength: 64 })} />}
      </Field>
      <div className="discount-pair">
        <Field label="Kind">
          {(control) => (
            <select
              {...control}
              className="input"
              value={fields.kind}
              onChange={({ target }) => set({ kind: target.value as DiscountFields["kind"] })}
            >
              <option value="percent">Percent off</option>
              <option value="amount">Amount off</option>
            </select>
          )}
        </Field>
        <Field
          label={isPercent ? "Percent, 100 is free" : "Amount in the product's currency"}
          error={errors[isPercent ? "percentOff" : "amountOff"]}
        >
          {(control) => <input {...control} {...text("off", { inputMode: "decimal" })} />}
        </Field>
      </div>
      <Field label="For" error={errors["productId"]}>
        {(control) => (
          <select
            {...control}
            className="input"
            value={fields.productId}
            onChange={({ target }) => set({ productId: target.value })}
          >
            <option value="">All your products</option>
            {products?.data.map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        )}
      </Field>
      <div className="discount-pair">
        <Field label="Uses in all, optional" error={errors["maxRedemptions"]}>
          {(control) => <input {...control} {...text("maxRedemptions", { inputMode: "numeric" })} />}
        </Field>
        <Field label="Uses of a buyer, optional" error={errors["maxPerBuyer"]}>
          {(control) => <input {...control} {...text("maxPerBuyer", { inputMode: "numeric" })} />}
        </Field>
      </div>
      <div className="discount-pair">
        <Field label="Works from, optional" error={errors["startsAt"]}>
          {(control) => <input {...control} {...text("startsAt", { type: "datetime-local" })} />}
        </Field>
        <Field label="Works until, optional" error={errors["endsAt"]}>
          {(control) => <input {...control} {...text("endsAt", { type: "datetime-local" })} />}
        </Field>
      </div>
    </>
  );
}
