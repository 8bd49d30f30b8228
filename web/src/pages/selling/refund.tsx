import "../../components/studio/studio.css";
import "./selling.css";
import type { Refund, RefundRuns, SaleDetail } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ChevronIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Pair } from "../../components/studio/sale-split.tsx";
import { SaleUsage } from "../../components/studio/sale-usage.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount, formatMoment, formatMoney, formatPercent } from "../../lib/format.ts";
import { refundStatus } from "../../lib/orders.ts";
import { refundReason, sellerRefundStatus } from "../../lib/refund-reasons.ts";
import { useTitle } from "../../lib/use-title.ts";
import { refundQuery, refundsOfSaleQuery, saleQuery } from "../../queries/selling.ts";
import { RefundDecision } from "./refund-decision.tsx";

const route = getRouteApi("/studio-shell/studio/refunds/$refundId");

export default function RefundPage() {
  const { refundId } = route.useParams();
  const { data: refund } = useSuspenseQuery(refundQuery(refundId));
  const { data: sale } = useSuspenseQuery(saleQuery(refund.orderId));
  const [tone, label] = sellerRefundStatus(refund);
  useTitle(`Refund of ${refund.product.title}`);
  return (
    <main className="work studio" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/studio/refunds">Refunds</Link>
        <ChevronIcon />
        <span dir="auto">{refund.product.title}</span>
      </nav>
      <div className="row wrap sale-head">
        <h1 className="page-title">
          {formatMoney(refund.amount, refund.currency)} for <span dir="auto">{refund.product.title}</span>
        </h1>
        <StatusTag tone={tone}>{label}</StatusTag>
      </div>
      <div className="studio-columns">
        <div>
          <Reason refund={refund} sale={sale} />
          <SaleUsage sale={sale} />
          {refund.runs && <RunFailures runs={refund.runs} />}
          <OrderFacts sale={sale} refund={refund} />
        </div>
        {refund.status === "pending" ? (
          <RefundDecision refund={refund} sale={sale} />
        ) : (
          <Decided refund={refund} sale={sale} />
        )}
      </div>
    </main>
  );
}

const Reason = ({ refund, sale }: { refund: Refund; sale: SaleDetail }) => (
  <section className="beam thin">
    <h2 className="h3">
      What {refund.requestedBy === "buyer" ? "the buyer says" : "was given as the reason"}
    </h2>
    <p className="m" dir="auto">
      {refundReason(refund)}
    </p>
    {refund.details && (
      <blockquote className="studio-quote preserve-lines" dir="auto">
        {refund.details}
      </blockquote>
    )}
    <p className="sm soft">
      <span dir="auto">{sale.buyer.name}</span>, <Time iso={refund.createdAt} />
      {refund.approvalReason === "recent_instant_refund" &&
        ". Never used; you decide because the buyer had an instant refund recently"}
      .
    </p>
  </section>
);

/** Tests of the product never mix with these runs. */
const RunFailures = ({ runs: { buyer, others, failsMoreOften } }: { runs: RefundRuns }) => (
  <section className="beam thin">
    <h2 className="h3">Failed runs at the request</h2>
    <dl className="studio-pairs">
      <Pair term="Of this buyer">{failedShare(buyer)}</Pair>
      <Pair term="Of other buyers in 90 days">{failedShare(others)}</Pair>
    </dl>
    <p className="sm soft">
      {failsMoreOften
        ? "The prompt fails more often for this buyer: the 95 % intervals do not overlap."
        : "The figures do not show that the prompt fails more often for this buyer."}{" "}
      Failures of the buyer’s key do not count.
    </p>
  </section>
);

const failedShare = ({ runs, failed, interval }: RefundRuns["buyer"]): string =>
  interval === null
    ? "no runs"
    : `${formatCount(failed)} of ${formatCount(runs)} (95 %: ${formatPercent(interval.low)} to ${formatPercent(interval.high)})`;

function OrderFacts({ sale, refund }: { sale: SaleDetail; refund: Refund }) {
  const { data } = useQuery(refundsOfSaleQuery(sale.orderId));
  const others = (data?.data ?? []).filter(({ id }) => id !== refund.id);
  return (
    <section className="beam thin">
      <h2 className="h3">The order</h2>
      <dl className="studio-pairs">
        <Pair term="Order">
          <Link to="/studio/sales/$orderId" params={{ orderId: sale.orderId }} className="link">
            {formatMoney(sale.amount, sale.currency)}, version {sale.product.version}
          </Link>
        </Pair>
        <Pair term="Bought">
          <Time iso={sale.createdAt} />
        </Pair>
        <Pair term="Refund window">{sale.refundDays} days</Pair>
        {others.map((other) => (
          <Pair key={other.id} term={`Earlier request: ${refundStatus(other)[1]}`}>
            <Link to="/studio/refunds/$refundId" params={{ refundId: other.id }} className="link">
              {formatMoney(other.amount, other.currency)}
            </Link>
          </Pair>
        ))}
        <Pair term="Refund">
          <Id id={refund.id} />
        </Pair>
      </dl>
    </section>
  );
}

const DECIDERS: Record<string, string> = {
  rules: "the rules: unused, more failures than others, or no decision in time",
  seller: "you",
  admin: "an administrator",
};

const Decided = ({ refund, sale }: { refund: Refund; sale: SaleDetail }) => (
  <aside className="panel studio-panel" aria-label="Decision">
    <dl className="studio-pairs">
      {refund.decidedBy && <Pair term="Decided by">{DECIDERS[refund.decidedBy] ?? refund.decidedBy}</Pair>}
      {refund.decidedAt && <Pair term="Decided">{formatMoment(refund.decidedAt)}</Pair>}
      {refund.completedAt && <Pair term="Ended">{formatMoment(refund.completedAt)}</Pair>}
      <Pair term="Refunded so far">{formatMoney(sale.refundedAmount, sale.currency)}</Pair>
      {refund.failureCode && <Pair term="Why it failed">{refund.failureCode}</Pair>}
    </dl>
    {refund.decisionNote && (
      <blockquote className="studio-quote preserve-lines" dir="auto">
        {refund.decisionNote}
      </blockquote>
    )}
  </aside>
);
