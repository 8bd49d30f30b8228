import "../../components/studio/studio.css";
import "./selling.css";
import type { PayoutDetail, PayoutItem } from "@stoa/sdk";
import { keepPreviousData, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { ChevronIcon, DownloadIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatDate, formatMoment, formatMoney } from "../../lib/format.ts";
import { itemKind, payoutFailure, payoutStatus } from "../../lib/payouts.ts";
import { saveResponse } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { payoutItemsQuery, payoutQuery } from "../../queries/selling.ts";

const route = getRouteApi("/studio-shell/studio/payouts/$payoutId");

export default function PayoutPage() {
  const { payoutId } = route.useParams();
  const { data: payout } = useSuspenseQuery(payoutQuery(payoutId));
  const amount = formatMoney(payout.amount, payout.currency);
  const [tone, label] = payoutStatus(payout);
  useTitle(`Payout of ${amount}`);
  return (
    <main className="work studio" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/studio/payouts">Payouts</Link>
        <ChevronIcon />
        <span>{amount}</span>
      </nav>
      <div className="row between wrap sale-head">
        <div className="row wrap">
          <h1 className="page-title">{amount}</h1>
          <StatusTag tone={tone}>{label}</StatusTag>
        </div>
        <div className="row wrap">
          <StatementButton payoutId={payoutId} format="pdf" />
          <StatementButton payoutId={payoutId} format="csv" />
        </div>
      </div>
      <p className="soft">
        {formatDate(`${payout.period.start}T12:00:00Z`)} to {formatDate(`${payout.period.end}T12:00:00Z`)},
        created {formatMoment(payout.createdAt)}
        {payout.completedAt && <>, paid {formatMoment(payout.completedAt)}</>}
        {payout.failureCode && <>: {payoutFailure(payout.failureCode)}</>}. <Id id={payout.id} />
      </p>
      <Statement payout={payout} />
      <Items payoutId={payoutId} />
    </main>
  );
}

function StatementButton({ payoutId, format }: { payoutId: string; format: "pdf" | "csv" }) {
  const save = useAction({
    run: async () => await saveResponse(await stoa.payouts.statement(payoutId, { format })),
    onError: (error) => showError("The statement was not downloaded", error),
  });
  return (
    <button type="button" className="btn" disabled={save.isPending} onClick={() => save.start()}>
      <DownloadIcon /> Statement {format.toUpperCase()}
    </button>
  );
}

function Statement({ payout: { statement, amount, currency } }: { payout: PayoutDetail }) {
  const facts = [
    ["Balance before", statement.opening],
    ["Added", statement.added],
    ["Paid out", -amount],
    ["Balance after", statement.closing],
  ] as const;
  return (
    <div className="facts studio-facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <span className="soft sm">{label}</span>
          <strong>{formatMoney(value, currency)}</strong>
        </div>
      ))}
    </div>
  );
}

function Items({ payoutId }: { payoutId: string }) {
  const { page } = route.useSearch();
  const result = useQuery({ ...payoutItemsQuery(payoutId, page), placeholderData: keepPreviousData });
  return (
    <>
      <h2 className="h3 small-heading-block">What was added</h2>
      <StudioList
        result={result}
        page={page}
        noun={["entry", "entries"]}
        code={{
          curl: curlOf("GET", `/payouts/${payoutId}/items`),
          sdk: `for await (const item of stoa.payouts.items("${payoutId}")) console.log(item.kind, item.amount);`,
        }}
        empty={<p className="soft">Nothing since the last payout: it pays from the balance before.</p>}
      >
        {(items) => <ItemTable items={items} />}
      </StudioList>
    </>
  );
}

const ItemTable = ({ items }: { items: PayoutItem[] }) => (
  <table>
    <thead>
      <tr>
        <th>What</th>
        <th>Product</th>
        <th className="r">Booked</th>
        <th className="r">Available from</th>
        <th className="r">Amount</th>
      </tr>
    </thead>
    <tbody>
      {items.map((item) => (
        <tr key={`${item.kind} ${item.orderId} ${item.share} ${item.occurredAt}`}>
          <td>
            {item.orderId && item.share === "earnings" ? (
              <Link to="/studio/sales/$orderId" params={{ orderId: item.orderId }} className="link">
                {itemKind(item)}
              </Link>
            ) : (
              itemKind(item)
            )}
          </td>
          <td className="name" dir="auto">
            {item.product?.title}
          </td>
          <td className="r soft" data-label="Booked">
            <Time iso={item.occurredAt} isDay />
          </td>
          <td className="r soft" data-label="Available from">
            <Time iso={item.at} isDay />
          </td>
          <td className="r m">{formatMoney(item.amount, item.currency)}</td>
        </tr>
      ))}
    </tbody>
  </table>
);
