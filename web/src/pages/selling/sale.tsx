import "../../components/studio/studio.css";
import "./selling.css";
import type { Refund, SaleDetail } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ChevronIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Pair, SaleSplit } from "../../components/studio/sale-split.tsx";
import { SaleUsage } from "../../components/studio/sale-usage.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { orderStatus } from "../../lib/orders.ts";
import { sellerRefundStatus } from "../../lib/refund-reasons.ts";
import { productPath } from "../../lib/slug.ts";
import { editorPath } from "../../lib/studio-links.ts";
import { useTitle } from "../../lib/use-title.ts";
import { refundsOfSaleQuery, saleQuery } from "../../queries/selling.ts";

const route = getRouteApi("/studio-shell/studio/sales/$orderId");

export default function SalePage() {
  const { orderId } = route.useParams();
  const { data: sale } = useSuspenseQuery(saleQuery(orderId));
  const { product, buyer } = sale;
  const [tone, label] = orderStatus(sale);
  useTitle(`Sale of ${product.title}`);
  return (
    <main className="work studio" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/studio/sales">Sales</Link>
        <ChevronIcon />
        <span dir="auto">{product.title}</span>
      </nav>
      <div className="row between wrap sale-head">
        <div className="row wrap">
          <h1 className="page-title" dir="auto">
            {product.title}
          </h1>
          <StatusTag tone={tone}>{label}</StatusTag>
        </div>
      </div>
      <p className="soft">
        Bought by <span dir="auto">{buyer.name}</span>, version {product.version}
      </p>
      <div className="studio-columns">
        <div>
          <Refunds sale={sale} />
          <SaleUsage sale={sale} />
        </div>
        <SaleFacts sale={sale} />
      </div>
    </main>
  );
}

function Refunds({ sale: { orderId, refundDays } }: { sale: SaleDetail }) {
  const { data, error, refetch } = useQuery(refundsOfSaleQuery(orderId));
  return (
    <section className="beam thin">
      <h2 className="h3">Refunds</h2>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {data?.data.length === 0 && (
        <p className="soft">
          None.{" "}
          {refundDays === 0 ? "You offer no refund." : `The buyer can request one within ${refundDays} days.`}
        </p>
      )}
      <ul className="sale-refunds">
        {data?.data.map((refund) => (
          <RefundItem key={refund.id} refund={refund} />
        ))}
      </ul>
    </section>
  );
}

function RefundItem({ refund }: { refund: Refund }) {
  const [tone, label] = sellerRefundStatus(refund);
  return (
    <li className="row wrap between">
      <span className="row wrap">
        <StatusTag tone={tone}>{label}</StatusTag>
        <Link to="/studio/refunds/$refundId" params={{ refundId: refund.id }} className="link">
          {formatMoney(refund.amount, refund.currency)}
        </Link>
      </span>
      <Time iso={refund.createdAt} className="sm soft" />
    </li>
  );
}

function SaleFacts({ sale }: { sale: SaleDetail }) {
  const { orderId, product, createdAt, maturesAt, receiptNumber, referralCode } = sale;
  return (
    <aside className="panel studio-panel" aria-label="Amounts and facts">
      <SaleSplit sale={sale} />
      <dl className="studio-pairs">
        <Pair term="Order">
          <Id id={orderId} />
        </Pair>
        <Pair term="Sold">
          <Time iso={createdAt} />
        </Pair>
        {maturesAt && (
          <Pair term="Can be paid out from">
            <Time iso={maturesAt} isDay />
          </Pair>
        )}
        {receiptNumber && <Pair term="Receipt of the buyer">{receiptNumber}</Pair>}
        {referralCode && <Pair term="Referral code">{referralCode}</Pair>}
      </dl>
      <div className="row wrap">
        <Link to={editorPath(product)} className="btn s">
          Edit the product
        </Link>
        <Link to={`/p/${productPath(product)}` as string} className="btn s">
          Its page
        </Link>
      </div>
      <ShowAsCode
        curl={curlOf("GET", `/sales/${orderId}`)}
        sdk={`const sale = await stoa.sales.get("${orderId}");`}
      />
    </aside>
  );
}
