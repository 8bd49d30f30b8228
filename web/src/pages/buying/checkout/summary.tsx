import type { CreatePurchase, PurchaseDetail, PurchaseQuote } from "@stoa/sdk";
import type { ReactNode } from "react";
import { Cover } from "../../../components/cover.tsx";
import { ShowAsCode } from "../../../components/show-as-code.tsx";
import { countryName } from "../../../lib/countries.ts";
import { curlOf } from "../../../lib/curl.ts";
import { formatMoney } from "../../../lib/format.ts";
import { refundRuleOfOffer } from "../../../lib/orders.ts";

/** The amounts of an order or a quote. */
type Sale = Pick<PurchaseDetail, "lines" | "currency" | "discountCode" | "taxRate"> & { decimals?: number };

interface PayAction {
  label: string;
  busyLabel: string;
  isBusy: boolean;
  isDisabled: boolean;
  onPay: () => void;
}

interface SummaryProps {
  product: {
    id: string;
    title: string;
    type: string;
    version: string;
    refundDays?: number;
    images?: string[];
    author: { name: string };
  };
  /** Absent: the buyer is not signed in, cannot buy, or waits for it. */
  quote?: PurchaseQuote | undefined;
  /** The list price without tax, while there is no quote. */
  price: number;
  currency: string;
  purchase?: CreatePurchase;
  /** Absent: the buyer is not signed in. */
  pay?: PayAction;
}

export function Summary({ product, quote, price, currency, purchase, pay }: SummaryProps) {
  const refundDays = quote?.refundDays ?? product.refundDays;
  return (
    <>
      <aside className="panel summary" aria-label="Summary">
        <ProductLine product={product} />
        <dl>{quote ? <SaleLines sale={quote} /> : <ListPrice amount={formatMoney(price, currency)} />}</dl>
        {pay && <PayButton {...pay} />}
        {refundDays !== undefined && (
          <p className="sm soft">
            {quote?.lines.total === 0 ? "A free copy has nothing to refund." : refundRuleOfOffer(refundDays)}
          </p>
        )}
        <p className="xs faint">Your provider bills the runs.</p>
        {purchase && <PurchaseAsCode purchase={purchase} />}
      </aside>
      {pay && (
        <div className="pay-bar">
          {quote && (
            <span>
              <b className="num">{formatMoney(quote.lines.total, quote.currency, quote.decimals)}</b>
              {quote.taxRate && <span className="xs soft">with tax</span>}
            </span>
          )}
          <PayButton {...pay} />
        </div>
      )}
    </>
  );
}

const ListPrice = ({ amount }: { amount: string }) => (
  <>
    <Line term="Price" amount={amount} />
    <Line term="Tax" amount="added where due" />
    <Line isTotal term="Total before tax" amount={amount} />
  </>
);

export function SaleLines({ sale: { lines, currency, discountCode, taxRate, decimals } }: { sale: Sale }) {
  const money = (amount: number) => formatMoney(amount, currency, decimals);
  return (
    <>
      <Line term="Price" amount={money(lines.subtotal)} />
      {lines.discount > 0 && (
        <Line
          term={
            <>
              Discount <span className="mono">{discountCode}</span>
            </>
          }
          amount={<span className="good m">−{money(lines.discount)}</span>}
        />
      )}
      {taxRate && (
        <Line
          term={`${taxRate.inclusive ? "Included tax" : "Tax"}, ${countryName(taxRate.country)}, ${taxRate.percent} %`}
          amount={money(lines.tax)}
        />
      )}
      <Line isTotal term="Total" amount={money(lines.total)} />
    </>
  );
}

const PayButton = ({ label, busyLabel, isBusy, isDisabled, onPay }: PayAction) => (
  <button
    type="button"
    className="btn primary l wide"
    disabled={isBusy || isDisabled}
    aria-busy={isBusy}
    onClick={onPay}
  >
    {isBusy ? busyLabel : label}
  </button>
);

export const ProductLine = ({ product }: Pick<SummaryProps, "product">) => (
  <div className="row product-line">
    <Cover product={product} image={product.images?.[0] ?? null} className="t" />
    <div>
      <b dir="auto">{product.title}</b>
      <div className="sm soft" dir="auto">
        {product.type === "WORKFLOW" ? "Workflow" : "Prompt"}, version {product.version}, by{" "}
        {product.author.name}
      </div>
    </div>
  </div>
);

interface LineProps {
  term: ReactNode;
  amount: ReactNode;
  isTotal?: boolean;
}

export const Line = ({ term, amount, isTotal = false }: LineProps) => (
  <div className={isTotal ? "total" : undefined}>
    <dt>{term}</dt>
    <dd className="num">{amount}</dd>
  </div>
);

const PurchaseAsCode = ({ purchase }: { purchase: CreatePurchase }) => (
  <ShowAsCode
    curl={curlOf("POST", "/purchases", purchase)}
    sdk={`const order = await stoa.purchases.create(${JSON.stringify(purchase, null, 2)});`}
  />
);
