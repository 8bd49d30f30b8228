import type { DiscountCode } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount, formatMoney, formatPercent } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { productDiscountsQuery } from "../../queries/product-editor.ts";
import { useEditor } from "./editor-context.tsx";

/** The codes that apply to the product. Their other terms are on the page of all codes. */
export default function DiscountsTab() {
  const { product } = useEditor();
  const { data: codes, error } = useQuery(productDiscountsQuery(product.id));
  return (
    <div className="stack form editor-form">
      {error && <ErrorStrip error={error} />}
      {!codes && !error && <SkeletonRows count={3} />}
      {codes?.length === 0 && (
        <EmptyState title="No discount codes yet">
          A code gives a part of the price, or a free copy. Create one for this product.
        </EmptyState>
      )}
      {codes && codes.length > 0 && <CodeTable codes={codes} />}
      <NewCode />
      <p>
        <Link className="link" to="/studio/discounts">
          All discount codes
        </Link>
      </p>
    </div>
  );
}

const CodeTable = ({ codes }: { codes: DiscountCode[] }) => (
  <div className="editor-scroll">
    <table>
      <thead>
        <tr>
          <th>Code</th>
          <th>Discount</th>
          <th>Applies to</th>
          <th className="r">Used</th>
          <th>Ends</th>
        </tr>
      </thead>
      <tbody>
        {codes.map((code) => (
          <tr key={code.id}>
            <td className="mono">{code.code}</td>
            <td className="num">{discountOf(code)}</td>
            <td>{code.productId === null ? "All your products" : "This product"}</td>
            <td className="r num">
              {formatCount(code.redemptions)}
              {code.maxRedemptions !== null && ` of ${formatCount(code.maxRedemptions)}`}
            </td>
            <td>{code.endsAt === null ? "Never" : <Time iso={code.endsAt} isDay />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const discountOf = ({ percentOff, amountOff, currency }: DiscountCode): string =>
  percentOff === null
    ? currency === null
      ? String(amountOff)
      : formatMoney(amountOff ?? 0, currency)
    : formatPercent(percentOff / 100);

function NewCode() {
  const { product } = useEditor();
  const client = useQueryClient();
  const [code, setCode] = useState("");
  const [percent, setPercent] = useState("");
  const create = useAction({
    run: async (input: { code: string; percentOff: number }, idempotencyKey) =>
      await stoa.discountCodes.create({ ...input, productId: product.id }, { idempotencyKey }),
    onSuccess: async (created) => {
      await client.invalidateQueries({ queryKey: ["discount-codes"] });
      setCode("");
      setPercent("");
      showToast(`${created.code} gives ${discountOf(created)} off`);
    },
  });
  const errors = fieldErrors(create.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.start({ code, percentOff: Number(percent) });
  };
  return (
    <form className="beam thin stack" onSubmit={submit} data-own-undo>
      <h2 className="h3">New code for this product</h2>
      {Object.keys(errors).length === 0 && (
        <FormError error={create.error} title="The code was not created" />
      )}
      <div className="editor-pair">
        <Field label="Code" error={errors["code"]}>
          {(control) => (
            <input
              {...control}
              className="input mono"
              required
              maxLength={64}
              autoComplete="off"
              value={code}
              onChange={({ target }) => setCode(target.value)}
            />
          )}
        </Field>
        <Field label="Percent off" error={errors["percentOff"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              type="number"
              required
              min={0}
              max={100}
              step={0.01}
              value={percent}
              onChange={({ target }) => setPercent(target.value)}
            />
          )}
        </Field>
      </div>
      <div>
        <button type="submit" className="btn" disabled={create.isPending}>
          Create code
        </button>
      </div>
    </form>
  );
}
