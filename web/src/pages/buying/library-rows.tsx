import type { Execution, Purchase, PurchaseDetail } from "@stoa/sdk";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { DownloadDialog } from "../../components/buying/download-dialog.tsx";
import { RefundDialog } from "../../components/buying/refund-dialog.tsx";
import { ReviewDialog } from "../../components/buying/review-dialog.tsx";
import { Cover } from "../../components/cover.tsx";
import { ArrowUpIcon, PlayIcon, PromptIcon, WorkflowIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatDate } from "../../lib/format.ts";
import { isUnopened, openRefund, timeLeft } from "../../lib/orders.ts";
import { useNow } from "../../lib/use-now.ts";
import { costOf, isWorkflow, type LibraryItem, updateOf } from "./library-items.ts";

type OpenDialog = { kind: "refund" | "review" | "download"; purchase: PurchaseDetail };

export function LibraryRows({ items, allRunsKnown }: { items: LibraryItem[]; allRunsKnown: boolean }) {
  const [dialog, open] = useState<OpenDialog | null>(null);
  const close = () => open(null);
  const firstNeverRun = allRunsKnown ? items.find(({ lastRun }) => !lastRun)?.purchase.orderId : undefined;
  return (
    <>
      <ul className="beam list">
        {items.map((item) => (
          <Row
            key={item.purchase.orderId}
            item={item}
            allRunsKnown={allRunsKnown}
            isNext={item.purchase.orderId === firstNeverRun}
            onOpen={open}
          />
        ))}
      </ul>
      {dialog?.kind === "refund" && <RefundDialog purchase={dialog.purchase} onClose={close} />}
      {dialog?.kind === "review" && <ReviewDialog product={dialog.purchase.product} onClose={close} />}
      {dialog?.kind === "download" && <DownloadDialog purchase={dialog.purchase} onClose={close} />}
    </>
  );
}

interface RowProps {
  item: LibraryItem;
  allRunsKnown: boolean;
  /** Bought and never run: the next thing to do. */
  isNext: boolean;
  onOpen: (dialog: OpenDialog) => void;
}

function Row({ item: { purchase, detail, lastRun }, allRunsKnown, isNext, onOpen }: RowProps) {
  const { product, orderId } = purchase;
  const isHeld = detail?.entitlement?.status === "held";
  return (
    <li>
      <Cover product={product} className="t" />
      <div className="stack names">
        <Link to="/orders/$orderId" params={{ orderId }} className="name" dir="auto">
          {product.title}
        </Link>
        <span className="row sm soft wrap">
          <span className="row who">
            {isWorkflow(purchase) ? <WorkflowIcon size={14} /> : <PromptIcon size={14} />}
            <span className="cut" dir="auto">
              {isWorkflow(purchase) ? "Workflow" : "Prompt"} by {product.author.name}
            </span>
          </span>
          <span className="num faint">{detail?.entitlement?.version ?? product.version}</span>
          {detail && <UpdateTag detail={detail} />}
        </span>
      </div>
      <LastRun run={lastRun} isKnown={allRunsKnown} />
      <div className="sm">{detail && <RefundState purchase={detail} />}</div>
      <span className="row actions">
        {isHeld ? (
          <button type="button" className="btn" disabled>
            Run
          </button>
        ) : (
          <Link
            className={isNext ? "btn primary" : "btn"}
            to="/run/$productId"
            params={{ productId: product.id }}
            aria-label={`Run ${product.title}`}
          >
            <PlayIcon /> <span className="wide-only">Run</span>
          </Link>
        )}
        <Actions purchase={purchase} detail={detail} onOpen={onOpen} />
      </span>
    </li>
  );
}

function UpdateTag({ detail }: { detail: PurchaseDetail }) {
  const update = updateOf(detail);
  return (
    update !== null && (
      <span className="tag accent">
        <ArrowUpIcon /> {update}
      </span>
    )
  );
}

function LastRun({ run, isKnown }: { run: Execution | undefined; isKnown: boolean }) {
  if (!run) return <div className="sm">{isKnown && <span className="faint">Never run</span>}</div>;
  return (
    <div className="ran">
      <Time iso={run.createdAt} />
      <span className="sm soft num">{costOf(run)}</span>
    </div>
  );
}

function RefundState({ purchase }: { purchase: PurchaseDetail }) {
  const now = useNow();
  const refund = openRefund(purchase);
  if (refund) {
    const isUndecided = refund.status === "pending";
    return (
      <span className="stack refund-state">
        <StatusTag tone="warning">{isUndecided ? "Refund requested" : "Refund on its way"}</StatusTag>
        {isUndecided && refund.decideBy && (
          <span className="soft">answer by {formatDate(refund.decideBy)}</span>
        )}
      </span>
    );
  }
  if (purchase.status === "disputed") return <StatusTag tone="warning">Disputed at the bank</StatusTag>;
  const { until, amount } = purchase.refundable;
  if (amount === 0 || until === null) return null;
  return (
    <span className="stack refund-state">
      <span className="m">Refund until {formatDate(until)}</span>
      <span className="soft">{isUnopened(purchase) ? "not opened yet" : timeLeft(until, now)}</span>
    </span>
  );
}

interface ActionsProps {
  purchase: Purchase;
  detail: PurchaseDetail | undefined;
  onOpen: (dialog: OpenDialog) => void;
}

function Actions({ purchase, detail, onOpen }: ActionsProps) {
  const navigate = useNavigate();
  const { orderId, product } = purchase;
  const openIn = (kind: OpenDialog["kind"]) => () => detail && onOpen({ kind, purchase: detail });
  const canRefund = detail !== undefined && detail.refundable.amount > 0;
  return (
    <RowMenu
      label={`More for ${product.title}`}
      actions={[
        {
          label: "Order and receipt",
          onSelect: () => void navigate({ to: "/orders/$orderId", params: { orderId } }),
        },
        { label: "Download", isDisabled: !detail?.downloadUrl, onSelect: openIn("download") },
        { label: "Write a review", isDisabled: !detail, onSelect: openIn("review") },
        { label: "Refund", isDestructive: true, isDisabled: !canRefund, onSelect: openIn("refund") },
      ]}
    />
  );
}
