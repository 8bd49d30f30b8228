import type { PurchaseDetail } from "@stoa/sdk";
import { formatMoney } from "../../../lib/format.ts";
import { Line, ProductLine, SaleLines } from "./summary.tsx";

interface PaidSummaryProps {
  purchase: PurchaseDetail;
  /** The words of the button while nothing can be done. */
  waiting?: string;
}

/** The exact amounts of an order. */
export const PaidSummary = ({ purchase, waiting }: PaidSummaryProps) => (
  <aside className="panel summary" aria-label="Summary">
    <ProductLine product={purchase.product} />
    <OrderLines purchase={purchase} />
    {waiting !== undefined && (
      <button type="button" className="btn l wide" disabled>
        {waiting}
      </button>
    )}
  </aside>
);

export const OrderLines = ({ purchase }: { purchase: PurchaseDetail }) => (
  <dl>
    <SaleLines sale={purchase} />
    {purchase.refundedAmount > 0 && (
      <Line term="Refunded" amount={`−${formatMoney(purchase.refundedAmount, purchase.currency)}`} />
    )}
  </dl>
);
