import "./user.css";
import "./order.css";
import type { AdminOrderDetail } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { AuditEntries } from "../../components/administration/audit-entries.tsx";
import { PersonLink, ProductLink } from "../../components/administration/links.tsx";
import { Fact } from "../../components/fact.tsx";
import { ChevronIcon, UndoIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { cardName } from "../../lib/card-name.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { orderStatus } from "../../lib/orders.ts";
import { useTitle } from "../../lib/use-title.ts";
import { historyQuery, orderQuery } from "../../queries/administration.ts";
import { listOrderEvents } from "./order-events.ts";
import { OrderRefundDialog } from "./order-refund-dialog.tsx";
import { OrderRefunds } from "./order-refunds.tsx";

const route = getRouteApi("/admin-shell/admin/orders/$orderId");

/** Money is there that a refund can give back; the service decides in the end. */
const REFUNDABLE: ReadonlySet<string> = new Set(["completed", "partially_refunded"]);

export default function Order() {
  const { orderId } = route.useParams();
  const { data } = useSuspenseQuery(orderQuery(orderId));
  const { data: entries } = useSuspenseQuery(historyQuery(orderId));
  const [isRefunding, setRefunding] = useState(false);
  const { order, refunds } = data;
  const [tone, label] = orderStatus(order);
  useTitle(`Order: ${order.product.title}`);
  return (
    <main className="work admin-order" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/admin/orders">Orders</Link>
        <ChevronIcon />
        <span>{orderId}</span>
      </nav>
      <div className="row wrap between admin-user-head">
        <div className="stack">
          <h1 className="page-title" dir="auto">
            {order.product.title}
          </h1>
          <div className="row wrap sm soft">
            <StatusTag tone={tone}>{label}</StatusTag>
            <span>
              <PersonLink person={order.buyer} /> bought it from <PersonLink person={order.seller} />
            </span>
          </div>
        </div>
        {REFUNDABLE.has(order.status) && order.amount > order.refundedAmount && (
          <button type="button" className="btn" onClick={() => setRefunding(true)}>
            <UndoIcon /> Refund
          </button>
        )}
      </div>
      <div className="admin-columns">
        <div>
          <section className="beam thin stack">
            <h2 className="h3">What happened</h2>
            <ol className="admin-timeline">
              {listOrderEvents(data).map((event) => (
                <li key={event.key} className={event.tone}>
                  <span className="stack">
                    <span>{event.text}</span>
                    {event.note && <span className="sm soft">{event.note}</span>}
                  </span>
                  <span className="r num">{event.amount}</span>
                  <Time iso={event.at} className="sm soft" />
                </li>
              ))}
            </ol>
          </section>
          {refunds.length > 0 && <OrderRefunds refunds={refunds} />}
          {entries.length > 0 && (
            <section className="beam thin stack">
              <h2 className="h3">Audit log</h2>
              <AuditEntries entries={entries} />
            </section>
          )}
        </div>
        <Facts order={order} />
      </div>
      {isRefunding && <OrderRefundDialog order={order} onClose={() => setRefunding(false)} />}
    </main>
  );
}

function Facts({ order }: { order: AdminOrderDetail }) {
  const money = (amount: number) => formatMoney(amount, order.currency);
  const { lines, paymentMethod, processorFee, receiptNumber, referrer, taxRate } = order;
  return (
    <aside className="panel admin-facts" aria-label="Amounts and facts">
      <dl>
        <Fact term="Price">{money(lines.subtotal)}</Fact>
        {lines.discount > 0 && (
          <Fact term={`Discount ${order.discountCode ?? ""}`}>−{money(lines.discount)}</Fact>
        )}
        {taxRate && <Fact term={`Tax ${taxRate.percent} %, ${taxRate.country}`}>{money(lines.tax)}</Fact>}
        <Fact term="Paid">
          <b>{money(order.amount)}</b>
        </Fact>
        {order.refundedAmount > 0 && <Fact term="Given back">−{money(order.refundedAmount)}</Fact>}
      </dl>
      <dl className="order-shares">
        <Fact term="Seller">{money(order.earnings)}</Fact>
        <Fact term="Marketplace">{money(order.fee)}</Fact>
        {order.commission > 0 && <Fact term="Referrer">{money(order.commission)}</Fact>}
        {processorFee !== null && <Fact term="Payment provider">{money(processorFee)}</Fact>}
      </dl>
      <dl className="order-shares">
        <Fact term="Order">
          <Id id={order.orderId} />
        </Fact>
        <Fact term="Product">
          <ProductLink product={order.product} />
        </Fact>
        {referrer && (
          <Fact term="Referred by">
            <PersonLink person={referrer} />
          </Fact>
        )}
        {paymentMethod && <Fact term="Card">{cardName(paymentMethod)}</Fact>}
        {order.paymentId && (
          <Fact term="Payment">
            <Id id={order.paymentId} />
          </Fact>
        )}
        {order.maturesAt && (
          <Fact term="Earnings mature">
            <Time iso={order.maturesAt} />
          </Fact>
        )}
        {receiptNumber && <Fact term="Receipt">{receiptNumber}</Fact>}
      </dl>
      <ShowAsCode
        curl={curlOf("GET", `/admin/orders/${order.orderId}`)}
        sdk={`const order = await stoa.admin.orders.get("${order.orderId}");`}
      />
    </aside>
  );
}
