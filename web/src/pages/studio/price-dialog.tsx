import type { ProductCard } from "@stoa/sdk";
import { type FormEvent, useState } from "react";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { newPrice, type PriceChange } from "./use-bulk.ts";

interface PriceDialogProps {
  products: ProductCard[];
  onChange: (change: PriceChange) => void;
  onClose: () => void;
}

const SHOWN = 5;

/** Shows each new price before anything changes. */
export function PriceDialog({ products, onChange, onClose }: PriceDialogProps) {
  const [kind, setKind] = useState<PriceChange["kind"]>("amount");
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string>();
  const currencies = [...new Set(products.map(({ currency }) => currency))];
  const change = readChange(kind, typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (change) onChange(change);
    else
      setError(
        kind === "amount"
          ? `Enter a price above 0, such as 4.99. You typed “${typed}”.`
          : `Enter a percentage above -100, such as -20 or 15. You typed “${typed}”.`,
      );
  };
  return (
    <Dialog title={`Change the price of ${formatCount(products.length)} products`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <span className="seg s">
          <button type="button" aria-pressed={kind === "amount"} onClick={() => setKind("amount")}>
            To an amount
          </button>
          <button type="button" aria-pressed={kind === "percent"} onClick={() => setKind("percent")}>
            By a percentage
          </button>
        </span>
        <Field
          label={kind === "amount" ? `New price in ${currencies.join(", ")}` : "Percent, negative is cheaper"}
          error={error}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              inputMode="decimal"
              autoComplete="off"
              value={typed}
              onChange={({ target }) => {
                setTyped(target.value);
                setError(undefined);
              }}
            />
          )}
        </Field>
        {kind === "amount" && currencies.length > 1 && (
          <p className="sm soft">Each keeps its currency; the number is the same for all.</p>
        )}
        {change && <Preview products={products} change={change} />}
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep the prices
          </button>
          <button type="submit" className="btn primary">
            Change {formatCount(products.length)} {products.length === 1 ? "price" : "prices"}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

const Preview = ({ products, change }: { products: ProductCard[]; change: PriceChange }) => (
  <ul className="products-preview sm">
    {products.slice(0, SHOWN).map((product) => (
      <li key={product.id} className="row between">
        <span className="cut" dir="auto">
          {product.title}
        </span>
        <span className="num nowrap">
          <s className="soft">{formatMoney(product.price, product.currency)}</s>{" "}
          <b>{formatMoney(newPrice(product, change), product.currency)}</b>
        </span>
      </li>
    ))}
    {products.length > SHOWN && <li className="soft">and {formatCount(products.length - SHOWN)} more</li>}
  </ul>
);

function readChange(kind: PriceChange["kind"], typed: string): PriceChange | null {
  const number = typed.trim() === "" ? Number.NaN : Number(typed.trim().replace(",", "."));
  if (kind === "amount") return number > 0 ? { kind, amount: number } : null;
  return number > -100 ? { kind, percent: number } : null;
}
