import "./account.css";
import { ApiError } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { DownloadIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { saveFile } from "../../lib/save-file.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { accountQuery } from "../../session.ts";
import { collectData } from "./collect-data.ts";

const route = getRouteApi("/account/data");

export default function Data() {
  useTitle("Your data");
  const { close = false } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <main className="work" id="content">
      <h1 className="page-title">Your data</h1>
      <p className="soft">Take what is stored about you with you, or close the account.</p>
      <ExportSection />
      <section className="beam thin stack">
        <h2 className="h3">Close the account</h2>
        <p className="soft reading-width">
          Your name, email address and runs are deleted, and your products are no longer sold. Buyers keep
          what they bought, and receipts stay for the accounts. This cannot be undone.
        </p>
        <div>
          <Link to="." search={{ close: true }} className="btn danger">
            Close the account
          </Link>
        </div>
      </section>
      {close && <CloseAccount onClose={() => void navigate({ search: {}, replace: true })} />}
    </main>
  );
}

function ExportSection() {
  const [progress, setProgress] = useState({ part: "", items: 0 });
  const { data: account } = useSuspenseQuery(accountQuery);
  const collect = useAction({
    run: () => collectData(account?.role ?? "user", (part, items) => setProgress({ part, items })),
    onSuccess: (data) => {
      const day = new Date().toISOString().slice(0, 10);
      saveFile(`stoa-data-${day}.json`, "application/json", JSON.stringify(data, null, 2));
    },
  });
  return (
    <section className="beam thin stack">
      <h2 className="h3">Download your data</h2>
      <p className="soft reading-width">
        One JSON file with your profile, orders, refunds, runs, wishlist, notifications, plan payments, keys
        (without their values), sessions, apps and webhooks, and for sellers sales, payouts and discount
        codes.
      </p>
      <div className="row wrap">
        <button type="button" className="btn" disabled={collect.isPending} onClick={() => collect.start()}>
          <DownloadIcon /> {collect.isPending ? "Collecting" : "Download"}
        </button>
        <span className="sm soft" role="status">
          {collect.isPending && `${formatCount(progress.items)} entries so far, now ${progress.part}`}
          {collect.isSuccess && `${formatCount(progress.items)} entries saved`}
        </span>
        <ShowAsCode
          curl={curlOf("GET", "/purchases?limit=100")}
          sdk="for await (const purchase of stoa.purchases.list()) console.log(purchase);"
        />
      </div>
      {collect.error && <ErrorStrip error={collect.error} onRetry={() => collect.start()} />}
    </section>
  );
}

/** What cannot be paid out, by the error that says so. */
function moneyLeft(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.details["current"] !== "money_left") return null;
  const balances = error.details["balances"] as { currency: string; amount: number }[];
  return balances.map(({ amount, currency }) => formatMoney(amount, currency)).join(" and ");
}

function CloseAccount({ onClose }: { onClose: () => void }) {
  const { data: account } = useSuspenseQuery(accountQuery);
  const [giveUpBalance, setGiveUpBalance] = useState(false);
  const email = account?.email ?? "";
  const close = useAction({
    run: async () => await stoa.account.close({ confirm: email, giveUpBalance }),
    onSuccess: () => location.assign("/"),
  });
  const left = moneyLeft(close.error);
  return (
    <ConfirmDialog
      title="Close the account?"
      action="Close the account"
      keep="Keep it"
      typedName={email}
      isPending={close.isPending}
      onConfirm={() => close.start()}
      onClose={onClose}
    >
      <ul className="bullets">
        <li>All sessions, API keys and connected apps end now.</li>
        <li>Your products leave the market; buyers keep theirs.</li>
        <li>Your name, email address, runs and provider keys are deleted.</li>
        <li>Money that you earned is still paid out, as it matures.</li>
      </ul>
      <FormError error={close.error} title="The account is still open" />
      {(left !== null || giveUpBalance) && (
        <label className="choice">
          <input
            type="checkbox"
            className="check"
            checked={giveUpBalance}
            onChange={({ target }) => setGiveUpBalance(target.checked)}
          />
          <span>
            <span className="m">Give up {left ?? "the money that is left"}</span>{" "}
            <span className="soft sm">in place of setting up a payout account</span>
          </span>
        </label>
      )}
    </ConfirmDialog>
  );
}
