import type { ModeratedProduct } from "@stoa/sdk";
import { type ReactNode, useRef, useState } from "react";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { statusOf } from "../../lib/errors.ts";
import { useKeys } from "../../lib/use-keys.ts";
import { RefundBuyersButton, ReinstateButton, SuspendButton } from "./suspension.tsx";
import { useDecision } from "./use-decision.ts";

interface DecisionBarProps {
  moderated: ModeratedProduct;
  /** Of the content that the moderator sees. */
  etag: string | null;
  hasFailed: boolean;
  onReload: () => void;
}

/** What a moderator can do with the product in its present state. */
export function DecisionBar(props: DecisionBarProps) {
  const { moderated } = props;
  if (moderated.status === "pending_review") return <ReviewBar {...props} />;
  return <StateBar moderated={moderated} />;
}

function ReviewBar({ moderated, etag, hasFailed, onReload }: DecisionBarProps) {
  const [reason, setReason] = useState("");
  const [isMissing, setMissing] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const { approve, reject } = useDecision(moderated, etag);
  const error = approve.error ?? reject.error;
  const isPending = approve.isPending || reject.isPending;
  const startReject = () => {
    const text = reason.trim();
    setMissing(text === "");
    if (text === "") field.current?.focus();
    else reject.start(text);
  };
  useKeys({ a: () => approve.start(), x: startReject });
  return (
    <section className="decision" aria-label="Decision">
      {error && statusOf(error) === 412 && <ChangedStrip onReload={onReload} />}
      {error && statusOf(error) !== 412 && <ErrorStrip error={error} />}
      <div className="decision-row">
        <div className="grow stack decision-reason">
          <textarea
            ref={field}
            className="input area"
            rows={1}
            aria-label="What to change"
            aria-invalid={isMissing || undefined}
            aria-describedby={isMissing ? "decision-missing" : undefined}
            placeholder="What the seller has to change"
            maxLength={2_000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          {isMissing && (
            <p className="ferr" id="decision-missing">
              Write what to change: the seller gets it by email.
            </p>
          )}
        </div>
        <ShowAsCode
          curl={curlOf("POST", `/admin/products/${moderated.id}/approve`)}
          sdk={`await stoa.admin.products.approve("${moderated.id}", { headers: { "if-match": etag } });`}
        />
        <button
          type="button"
          className="btn danger"
          aria-keyshortcuts="x"
          disabled={isPending}
          onClick={startReject}
        >
          Reject <kbd className="kbd desk">X</kbd>
        </button>
        <button
          type="button"
          className={hasFailed ? "btn" : "btn primary"}
          aria-keyshortcuts="a"
          disabled={isPending}
          onClick={() => approve.start()}
        >
          Approve <kbd className="kbd desk">A</kbd>
        </button>
      </div>
    </section>
  );
}

const ChangedStrip = ({ onReload }: { onReload: () => void }) => (
  <div className="strip warning" role="alert">
    <span className="grow">
      <b>The seller changed the product while you read it.</b> It was not approved. Look at the new content
      first.
    </span>
    <button type="button" className="btn s" onClick={onReload}>
      Show the new content
    </button>
  </div>
);

const SUSPENDABLE: ReadonlySet<string> = new Set(["published", "unpublished"]);
const WITHOUT_ACCESS: ReadonlySet<string> = new Set(["malicious", "illegal"]);

function StateBar({ moderated }: { moderated: ModeratedProduct }) {
  const { dismiss } = useDecision(moderated, null);
  const { status, openReports, moderation } = moderated;
  const buttons: ReactNode[] = [
    openReports > 0 && (
      <button
        key="dismiss"
        type="button"
        className="btn"
        disabled={dismiss.isPending}
        onClick={() => dismiss.start()}
      >
        Dismiss {openReports === 1 ? "the report" : "the reports"}
      </button>
    ),
    SUSPENDABLE.has(status) && <SuspendButton key="suspend" moderated={moderated} />,
    status === "suspended" && WITHOUT_ACCESS.has(moderation?.reasonCode ?? "") && (
      <RefundBuyersButton key="refund" moderated={moderated} />
    ),
    status === "suspended" && <ReinstateButton key="reinstate" moderated={moderated} />,
  ].filter(Boolean);
  if (buttons.length === 0) return null;
  return (
    <section className="decision" aria-label="Decision">
      {dismiss.error && <ErrorStrip error={dismiss.error} />}
      <div className="decision-row end-row">{buttons}</div>
    </section>
  );
}
