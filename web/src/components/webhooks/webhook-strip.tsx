import type { WebhookEndpoint, WebhookStats } from "@stoa/sdk";
import { formatCount, formatDate } from "../../lib/format.ts";
import { DISABLED_REASONS } from "../../lib/webhooks.ts";
import { AlertIcon } from "../icons.tsx";
import { Time } from "../time.tsx";

const DISABLED_AFTER_MS = 5 * 86_400_000;

interface WebhookStripProps {
  endpoint: WebhookEndpoint;
  /** Of the last 24 hours. */
  stats: WebhookStats;
  isPending: boolean;
  onEnable: () => void;
  onRecover: () => void;
}

/** What is wrong with an endpoint, and the next step. */
export function WebhookStrip({ endpoint, stats, isPending, onEnable, onRecover }: WebhookStripProps) {
  const { failed, retrying, skipped } = stats.deliveries;
  if (!endpoint.enabled)
    return (
      <div className="strip warning">
        <AlertIcon size={20} />
        <div className="grow">
          <strong>
            {DISABLED_REASONS[endpoint.disabledReason ?? "owner"] ?? "This webhook is disabled."}
          </strong>{" "}
          Its events are skipped{skipped > 0 && `, ${formatCount(skipped)} in the last 24 hours`}. Repair it,
          enable it, then recover them.
        </div>
        <button type="button" className="btn s" disabled={isPending} onClick={onEnable}>
          Enable again
        </button>
      </div>
    );
  if (stats.failingSince !== null) {
    const end = new Date(new Date(stats.failingSince).getTime() + DISABLED_AFTER_MS).toISOString();
    return (
      <div className="strip bad">
        <AlertIcon size={20} />
        <div className="grow">
          <strong>
            No success since <Time iso={stats.failingSince} />.
          </strong>{" "}
          {describeCounts(retrying, failed)} Stoa disables the webhook on {formatDate(end)} if this continues.
        </div>
        <button type="button" className="btn s" onClick={onRecover}>
          Recover…
        </button>
      </div>
    );
  }
  if (failed + skipped === 0) return null;
  return (
    <div className="strip">
      <div className="grow">
        <strong>{formatCount(failed + skipped)} not delivered</strong> in the last 24 hours:{" "}
        {formatCount(failed)} failed, {formatCount(skipped)} skipped.
      </div>
      <button type="button" className="btn s" onClick={onRecover}>
        Recover…
      </button>
    </div>
  );
}

function describeCounts(retrying: number, failed: number): string {
  const parts = [
    retrying > 0 && `${formatCount(retrying)} wait for the next attempt`,
    failed > 0 && `${formatCount(failed)} failed`,
  ].filter(Boolean);
  return parts.length === 0 ? "" : `Of the last 24 hours, ${parts.join(" and ")}.`;
}
