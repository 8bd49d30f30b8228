import { useMemo, useState } from "react";
import { Field } from "../../components/field.tsx";
import { CloseIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { countries, countryName } from "../../lib/countries.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney, formatPercent } from "../../lib/format.ts";
import { useAccount } from "../../session.ts";
import { useSaleQuote } from "./buyer-view.tsx";
import { TextEditorField, useEditor } from "./editor-context.tsx";

const COMMON = ["US", "DE", "FR", "GB", "IN", "JP"];

/** The price, and who gets which part of it. */
export default function PriceTab() {
  const { draft, product } = useEditor();
  return (
    <div className="stack form editor-form">
      <div className="editor-pair">
        <TextEditorField
          name="price"
          inputMode="decimal"
          hint="Without tax, or with it if the marketplace includes tax"
        />
        <TextEditorField
          name="currency"
          maxLength={3}
          readOnly={product.publishedAt !== null}
          hint={product.publishedAt === null ? "Such as USD" : "Fixed since the first publication"}
        />
      </div>
      <Split />
      <div className="flush">
        <ShowAsCode
          curl={curlOf("PATCH", `/products/${product.id}`, { price: Number(draft.price) })}
          sdk={`await stoa.products.update("${product.id}", { price: ${Number(draft.price)} });`}
        />
      </div>
    </div>
  );
}

function Split() {
  const account = useAccount();
  const [shown, setShown] = useState(() => [
    ...new Set([...(account?.country ? [account.country] : []), ...COMMON]),
  ]);
  const { data: quote, error } = useSaleQuote(shown);
  const others = useMemo(() => countries().filter(({ code }) => !shown.includes(code)), [shown]);
  const money = (amount: number) => quote && formatMoney(amount, quote.currency, quote.decimals);
  return (
    <section className="beam thin stack">
      <h2 className="h3">Who gets which part</h2>
      {error && <ErrorStrip error={error} />}
      {quote && (
        <>
          <p className="sm soft">
            The marketplace takes {formatPercent(quote.feeBasisPoints / 10_000)} of the price before tax, a
            referrer {formatPercent(quote.commissionBasisPoints / 10_000)}.
          </p>
          <div className="editor-scroll">
            <table>
              <thead>
                <tr>
                  <th>Buyer in</th>
                  <th className="r">Pays</th>
                  <th className="r">Tax</th>
                  <th className="r">Fee</th>
                  <th className="r">You receive</th>
                  <th className="r">With a referral</th>
                  <th>
                    <span className="hidden">Remove</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {quote.countries.map((row) => (
                  <tr key={row.country}>
                    <td>{countryName(row.country)}</td>
                    <td className="r num">{money(row.total)}</td>
                    <td className="r num">
                      {money(row.tax)}
                      {row.taxRate && (
                        <span className="faint"> {formatPercent(row.taxRate.percent / 100)}</span>
                      )}
                    </td>
                    <td className="r num">{money(row.fee)}</td>
                    <td className="r num b">{money(row.earnings)}</td>
                    <td className="r num">{money(row.referred.earnings)}</td>
                    <td className="r">
                      <button
                        type="button"
                        className="iconb"
                        aria-label={`Remove ${countryName(row.country)}`}
                        disabled={shown.length === 1}
                        onClick={() => setShown(shown.filter((code) => code !== row.country))}
                      >
                        <CloseIcon />
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      <Field label="Add a country">
        {(control) => (
          <select
            {...control}
            className="input editor-country"
            value=""
            onChange={({ target }) => setShown([...shown, target.value])}
          >
            <option value="">Choose one</option>
            {others.map(({ code, name }) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
    </section>
  );
}
