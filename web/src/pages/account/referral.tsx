import "./account.css";
import { useSuspenseQuery } from "@tanstack/react-query";
import { CopyButton } from "../../components/copy-button.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatMoney, formatPercent } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { referralQuery } from "../../queries/account.ts";

export default function ReferralPage() {
  useTitle("Referrals");
  const { data } = useSuspenseQuery(referralQuery);
  const { code, url, commissionBasisPoints, sales, earnings } = data;
  return (
    <main className="work" id="content">
      <h1 className="page-title">Referrals</h1>
      <p className="soft">
        When another person buys with your link, you earn a part of the price:{" "}
        {formatPercent(commissionBasisPoints / 10_000)} unless the product says otherwise. Buyers pay the
        same.
      </p>
      <section className="beam thin stack">
        <h2 className="h3">Your link</h2>
        <div className="row wrap">
          <code className="codeblock wrap">{url}</code>
          <CopyButton text={url} label="Copy link" className="btn" />
        </div>
        <p className="soft">
          At the checkout, buyers can also type your code: <code>{code}</code>
        </p>
      </section>
      <section className="beam thin">
        <h2 className="h3">Earnings</h2>
        <p className="soft">
          {sales === 0
            ? "No purchases with your code yet."
            : `${formatCount(sales)} ${sales === 1 ? "purchase" : "purchases"} with your code.`}
        </p>
        {earnings.length > 0 && (
          <div className="scroll-x">
            <table>
              <thead>
                <tr>
                  <th>Currency</th>
                  <th className="r">Total</th>
                  <th className="r">Pending</th>
                  <th className="r">Available</th>
                  <th className="r">Held for refunds</th>
                  <th className="r">Paid out</th>
                </tr>
              </thead>
              <tbody>
                {earnings.map(({ currency, total, pending, available, reserved, paid }) => (
                  <tr key={currency}>
                    <td>{currency}</td>
                    {Object.entries({ total, pending, available, reserved, paid }).map(([part, amount]) => (
                      <td className="r num" key={part}>
                        {formatMoney(amount, currency)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section className="beam thin flush">
        <ShowAsCode
          curl={curlOf("GET", "/account/referral")}
          sdk="const { code, url, earnings } = await stoa.account.referral.get();"
        />
      </section>
    </main>
  );
}
