import { CopyButton } from "../../components/copy-button.tsx";
import { formatMoney } from "../../lib/format.ts";
import { productPath } from "../../lib/slug.ts";
import { useSaleQuote } from "./buyer-view.tsx";
import { TextEditorField, useEditor } from "./editor-context.tsx";

const UNTAXED = ["US"];

/** What those earn who bring a buyer. */
export default function ReferralsTab() {
  const { draft, product } = useEditor();
  const { data: quote } = useSaleQuote(UNTAXED);
  const sale = quote?.countries[0];
  const link = `${location.origin}/p/${productPath({ id: product.id, title: draft.title })}?ref=CODE`;
  return (
    <div className="stack form editor-form">
      <TextEditorField
        name="commission"
        inputMode="decimal"
        hint="In percent of the price before tax, from your part, for purchases with a referral code"
      />
      {sale && quote && (
        <p className="num">
          Of {formatMoney(quote.price, quote.currency)}, a referrer receives{" "}
          <b>{formatMoney(sale.referred.commission, quote.currency)}</b> and you{" "}
          <b>{formatMoney(sale.referred.earnings, quote.currency)}</b>. Without a referral you receive{" "}
          {formatMoney(sale.earnings, quote.currency)}.
        </p>
      )}
      <div className="stack">
        <p className="m">How referrers link to it</p>
        <p className="sm soft">Each account finds its code under Referrals.</p>
        <div className="row wrap">
          <code className="codeblock wrap grow">{link}</code>
          <CopyButton text={link} label="Copy link" />
        </div>
      </div>
    </div>
  );
}
