import type { SaleDetail } from "@stoa/sdk";
import type { ReactNode } from "react";
import { formatMoney } from "../../lib/format.ts";

/** From what the buyer paid to what the seller earns. */
export function SaleSplit({ sale }: { sale: SaleDetail }) {
  const { currency, lines, amount, fee, commission, tax, earnings, refundedAmount, taxRate, discountCode } =
    sale;
  const money = (value: number) => formatMoney(value, currency);
  return (
    <dl className="studio-pairs">
      <Pair term="Price">{money(lines.subtotal)}</Pair>
      {lines.discount > 0 && (
        <Pair term={discountCode === null ? "Discount" : `Discount ${discountCode}`}>
          {money(-lines.discount)}
        </Pair>
      )}
      <Pair term="Paid by the buyer">{money(amount)}</Pair>
      {tax > 0 && (
        <Pair term={taxRate ? `Tax, ${taxRate.country} ${taxRate.percent} %` : "Tax"}>{money(-tax)}</Pair>
      )}
      <Pair term="Marketplace fee">{money(-fee)}</Pair>
      {commission > 0 && <Pair term="Referrer's commission">{money(-commission)}</Pair>}
      <Pair term="You earn" isTotal>
        {money(earnings)}
      </Pair>
      {refundedAmount > 0 && <Pair term="Refunded to the buyer">{money(-refundedAmount)}</Pair>}
    </dl>
  );
}

interface PairProps {
  term: string;
  isTotal?: boolean;
  children: ReactNode;
}

export const Pair = ({ term, isTotal = false, children }: PairProps) => (
  <div className={isTotal ? "total" : ""}>
    <dt>{term}</dt>
    <dd>{children}</dd>
  </div>
);
