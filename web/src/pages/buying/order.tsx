import "./library.css";
import "./orders.css";
import type { OrderEvent, PurchaseDetail, Refund } from "@stoa/sdk";
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { DownloadDialog } from "../../components/buying/download-dialog.tsx";
import { cancelRefund, RefundDialog } from "../../components/buying/refund-dialog.tsx";
import { ReviewDialog } from "../../components/buying/review-dialog.tsx";
import { Cover } from "../../components/cover.tsx";
import { Fact } from "../../components/fact.tsx";
import { AlertIcon, ChevronIcon, DownloadIcon, PlayIcon, ReceiptIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { cardName } from "../../lib/card-name.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatBytes, formatDate, formatMoney } from "../../lib/format.ts";
import {
  declineReason,
  eventLabel,
  isUnopened,
  openRefund,
  orderStatus,
  refundRule,
  refundStatus,
  timeLeft,
} from "../../lib/orders.ts";
import { useAction } from "../../lib/use-action.ts";
import { useNow } from "../../lib/use-now.ts";
import { useTitle } from "../../lib/use-title.ts";
import { isOpen, isOwned, purchaseQuery } from "../../queries/buying.ts";
import { openedProductQuery } from "../../queries/market.ts";
import { OrderLines } from "./checkout/paid-summary.tsx";

const route = getRouteApi("/orders/$orderId");

type OpenDialog = "refund" | "review" | "download";

export default function Order() {
  const { orderId } = route.useParams();
  const { data: order } = useSuspenseQuery({
    ...purchaseQuery(orderId),
    refetchInterval: ({ state }) => (state.data && isMoving(state.data) ? 5_000 : false),
  });
  const { product } = order;
  useTitle(`Order: ${product.title}`);
  const [dialog, open] = useState<OpenDialog | null>(null);
  const close = () => open(null);
  return (
    <main className="library" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/library">Library</Link>
        <ChevronIcon />
        <Link to="/orders">Orders</Link>
        <ChevronIcon />
        <span dir="auto">{product.title}</span>
      </nav>
      <Head order={order} />
      <div className="order-columns">
        <div>
          <NextStep order={order} onOpen={open} />
          <Timeline order={order} />
          <Refunds order={order} />
          {isOwned(order) && order.entitlement?.status === "active" && <Files order={order} />}
        </div>
        <Facts order={order} />
      </div>
      {dialog === "refund" && <RefundDialog purchase={order} onClose={close} />}
      {dialog === "review" && <ReviewDialog product={product} onClose={close} />}
      {dialog === "download" && <DownloadDialog purchase={order} onClose={close} />}
    </main>
  );
}

/** Whether the order changes without the buyer. */
const isMoving = (order: PurchaseDetail) =>
  isOpen(order) || ["approved", "processing"].includes(openRefund(order)?.status ?? "");

function Head({ order }: { order: PurchaseDetail }) {
  const { product, entitlement } = order;
  const [tone, label] = orderStatus(order);
  return (
    <div className="row order-head">
      <Cover product={product} className="t" />
      <div>
        <h1 className="title" dir="auto">
          {product.title}
        </h1>
        <span className="row wrap soft">
          <StatusTag tone={tone}>{label}</StatusTag>
          <span dir="auto">
            {product.type === "WORKFLOW" ? "Workflow" : "Prompt"} by {product.author.name}
          </span>
          <span className="num">{entitlement?.version ?? product.version}</span>
        </span>
      </div>
    </div>
  );
}

/** What the buyer can do now, by the state of the order. */
function NextStep({ order, onOpen }: { order: PurchaseDetail; onOpen: (dialog: OpenDialog) => void }) {
  const { product, status, orderId } = order;
  if (isOwned(order)) return <OwnedActions order={order} onOpen={onOpen} />;
  const checkout = (label: string, search: { order?: string } = {}) => (
    <Link
      to="/checkout/$productId"
      params={{ productId: product.id }}
      search={search}
      preload={false}
      className="btn primary"
    >
      {label}
    </Link>
  );
  if (status === "requires_action")
    return (
      <Step
        tone="warning"
        text="Your bank wants a confirmation. You are not charged before that."
        action={checkout("Confirm the payment", { order: orderId })}
      />
    );
  if (status === "pending")
    return (
      <Step tone="warning" text="The payment is in progress. You are charged at most once." action={null} />
    );
  if (status === "failed")
    return (
      <Step
        text={`Your bank declined the card: ${declineReason(order.declineCode)}. You were not charged.`}
        action={checkout("Try again")}
        tone="bad"
      />
    );
  return (
    <Step
      text={
        status === "refunded"
          ? "The money went back, and access ended."
          : "This order was canceled; you were not charged."
      }
      action={checkout(status === "refunded" ? "Buy it again" : "Buy it")}
    />
  );
}

interface StepProps {
  text: string;
  action: ReactNode;
  /** Absent: nothing waits, and nothing failed. */
  tone?: "warning" | "bad";
}

const Step = ({ text, action, tone }: StepProps) => (
  <div className={tone ? `strip ${tone}` : "strip"} role="status">
    {tone && <AlertIcon size={20} />}
    <span className="grow">{text}</span>
    {action}
  </div>
);

function OwnedActions({ order, onOpen }: { order: PurchaseDetail; onOpen: (dialog: OpenDialog) => void }) {
  const { product, refundable, currency, downloadUrl, entitlement } = order;
  const now = useNow();
  const left = refundable.until === null ? null : timeLeft(refundable.until, now);
  const isHeld = entitlement?.status === "held";
  return (
    <section className="beam">
      <div className="row wrap">
        {isHeld ? (
          <button type="button" className="btn" disabled>
            Held while the refund is in progress
          </button>
        ) : (
          <Link className="btn primary" to="/run/$productId" params={{ productId: product.id }}>
            <PlayIcon /> Run
          </Link>
        )}
        <button
          type="button"
          className="btn"
          disabled={downloadUrl === null}
          onClick={() => onOpen("download")}
        >
          <DownloadIcon /> Download
        </button>
        <button type="button" className="btn" onClick={() => onOpen("review")}>
          Write a review
        </button>
        {refundable.amount > 0 && (
          <button type="button" className="btn danger" onClick={() => onOpen("refund")}>
            Refund {formatMoney(refundable.amount, currency)}
          </button>
        )}
      </div>
      <p className="sm soft">
        {refundRule(refundable)} {refundable.amount > 0 && left !== null && <b>{left}.</b>}
      </p>
    </section>
  );
}

const eventTones: Record<string, Tone> = {
  "purchase.completed": "good",
  "refund.requested": "warning",
  "refund.succeeded": "good",
  "refund.rejected": "bad",
  "refund.failed": "bad",
  "dispute.opened": "warning",
};

const Timeline = ({ order: { events, currency, status, createdAt } }: { order: PurchaseDetail }) => (
  <section className="beam">
    <h2>Events</h2>
    <ol className="timeline">
      {events.map((event) => (
        <EventItem key={`${event.type} ${event.at} ${event.refundId}`} event={event} currency={currency} />
      ))}
      {status === "failed" && (
        <li className="bad">
          <span>Declined</span>
          <Time iso={createdAt} className="sm soft" />
        </li>
      )}
    </ol>
  </section>
);

const EventItem = ({ event, currency }: { event: OrderEvent; currency: string }) => (
  <li className={eventTones[event.type] ?? ""}>
    <span>{eventLabel(event)}</span>
    <span className="num">{formatMoney(event.amount, currency)}</span>
    <Time iso={event.at} className="sm soft" />
  </li>
);

function Refunds({ order: { refunds } }: { order: PurchaseDetail }) {
  if (refunds.length === 0) return null;
  return (
    <section className="beam">
      <h2>Refunds</h2>
      <div>
        {refunds.map((refund) => (
          <RefundItem key={refund.id} refund={refund} />
        ))}
      </div>
    </section>
  );
}

function RefundItem({ refund }: { refund: Refund }) {
  const [tone, label] = refundStatus(refund);
  const cancel = useAction({ run: () => cancelRefund(refund) });
  return (
    <article className="refund">
      <div className="row between wrap">
        <span className="row">
          <StatusTag tone={tone}>{label}</StatusTag>
          <b className="num">{formatMoney(refund.amount, refund.currency)}</b>
        </span>
        <Time iso={refund.createdAt} className="sm soft" />
      </div>
      {refund.details && (
        <p className="preserve-lines" dir="auto">
          {refund.details}
        </p>
      )}
      {refund.decisionNote && (
        <p className="soft" dir="auto">
          The seller: {refund.decisionNote}
        </p>
      )}
      {refund.returnedAt && (
        <p className="soft">
          Your bank returned the money on {formatDate(refund.returnedAt)}. The marketplace pays you in another
          way{refund.settledAt ? `, done on ${formatDate(refund.settledAt)}` : ""}.
        </p>
      )}
      {refund.status === "pending" && (
        <div className="row wrap">
          <span className="sm soft grow">
            {refund.decideBy
              ? `The seller answers by ${formatDate(refund.decideBy)}; then it is approved.`
              : "The seller decides."}
          </span>
          <button
            type="button"
            className="btn s"
            disabled={cancel.isPending || cancel.isSuccess}
            onClick={() => cancel.start()}
          >
            Cancel the request
          </button>
        </div>
      )}
    </article>
  );
}

/** Lists the files after a click: reading the product counts as its first use. */
function Files({ order }: { order: PurchaseDetail }) {
  const [isWanted, want] = useState(false);
  const client = useQueryClient();
  const {
    data: product,
    error,
    refetch,
  } = useQuery({ ...openedProductQuery(order.product.id), enabled: isWanted, staleTime: 0 });
  const ends = isUnopened(order) && order.refundable.amount > 0;
  const files = isWanted ? product?.files : undefined;
  const isRead = Boolean(files);
  useEffect(() => {
    // Its rule of refunds is another one now.
    if (isRead) void client.invalidateQueries({ queryKey: purchaseQuery(order.orderId).queryKey });
  }, [isRead, client, order.orderId]);
  return (
    <section className="beam">
      <h2>Files</h2>
      {!isWanted && (
        <div className="row wrap">
          <button type="button" className="btn" onClick={() => want(true)}>
            Show the files
          </button>
          {ends && (
            <span className="sm soft">
              This counts as opened: from then on, the seller decides about a refund.
            </span>
          )}
        </div>
      )}
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {isWanted && !files && !error && <SkeletonRows count={2} />}
      {files?.length === 0 && <p className="soft">This product has no files.</p>}
      {files && files.length > 0 && (
        <ul className="files">
          {files.map((file) => (
            <li key={file.id} className="row between wrap">
              <a className="link" href={file.url} target="_blank" rel="noopener" dir="auto">
                {file.name}
              </a>
              <span className="sm soft num">{formatBytes(file.size)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Facts({ order }: { order: PurchaseDetail }) {
  const { orderId, receipt, paymentMethod, createdAt, referralCode } = order;
  return (
    <aside className="panel order-panel" aria-label="Amounts and receipt">
      <OrderLines purchase={order} />
      <dl className="facts-list">
        <Fact term="Order">
          <Id id={orderId} />
        </Fact>
        <Fact term="Placed">
          <Time iso={createdAt} />
        </Fact>
        {paymentMethod && <Fact term="Card">{cardName(paymentMethod)}</Fact>}
        {referralCode && <Fact term="Referral code">{referralCode}</Fact>}
        {receipt.number && <Fact term="Receipt">{receipt.number}</Fact>}
      </dl>
      {receipt.url && receipt.pdf && (
        <div className="row wrap">
          <a className="btn" href={receipt.url} target="_blank" rel="noopener">
            <ReceiptIcon /> Receipt
          </a>
          <a className="btn" href={receipt.pdf} target="_blank" rel="noopener">
            PDF
          </a>
        </div>
      )}
      <ShowAsCode
        curl={curlOf("GET", `/purchases/${orderId}`)}
        sdk={`const order = await stoa.purchases.get("${orderId}");`}
      />
    </aside>
  );
}
