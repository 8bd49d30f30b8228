import type { WebhookRecovery } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatTime } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { recoverableQuery, recoveryQuery } from "../../queries/webhooks.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ErrorSummary, Field, fieldErrors } from "../field.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { ShowAsCode } from "../show-as-code.tsx";

const HOUR_MS = 3_600_000;
const MAX_DAYS = 14;
/** The service's clock may be a little ahead, and 14 days ago is its limit. */
const MARGIN_MS = 60_000;

interface RecoverDialogProps {
  webhookId: string;
  failingSince: string | null;
  onClose: () => void;
}

/** Sends failed and skipped deliveries again, and shows their number before. */
export function RecoverDialog({ webhookId, failingSince, onClose }: RecoverDialogProps) {
  const [opened] = useState(() => Date.now());
  const [since, setSince] = useState(() => failingSince ?? before(opened, 24));
  const { data: found } = useQuery(recoverableQuery(webhookId, since));
  const recover = useRecover(webhookId);
  const total = found ? found.failed + found.skipped : undefined;
  if (recover.data)
    return (
      <Dialog title="Recovery" onClose={onClose}>
        <Progress webhookId={webhookId} started={recover.data} />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
        </DialogButtons>
      </Dialog>
    );
  const presets: [label: string, iso: string][] = [
    ...(failingSince ? [["Since the first failure", failingSince] as [string, string]] : []),
    ["24 hours", before(opened, 24)],
    ["7 days", before(opened, 168)],
    [`${MAX_DAYS} days`, new Date(opened - MAX_DAYS * 24 * HOUR_MS + MARGIN_MS).toISOString()],
  ];
  return (
    <Dialog title="Recover deliveries" onClose={onClose}>
      <p className="soft">
        Each failed or skipped delivery of an event since this time starts its schedule again.
      </p>
      <ErrorSummary error={recover.error} title="The recovery did not start" />
      <div className="row wrap">
        {presets.map(([label, iso]) => (
          <button
            key={label}
            type="button"
            className={iso === since ? "chip on" : "chip"}
            aria-pressed={iso === since}
            onClick={() => setSince(iso)}
          >
            {label}
          </button>
        ))}
      </div>
      <Field label="Since" error={fieldErrors(recover.error)["since"]}>
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            step={1}
            value={toLocalInput(since)}
            onChange={({ target: { value } }) => {
              if (!Number.isNaN(Date.parse(value))) setSince(new Date(value).toISOString());
            }}
          />
        )}
      </Field>
      <p role="status">
        {found === undefined ? (
          "Counting…"
        ) : (
          <>
            <b>
              {found.isEstimate && "At least "}
              {formatCount(total ?? 0)} {total === 1 ? "delivery" : "deliveries"}
            </b>{" "}
            since {formatTime(since)}: {formatCount(found.failed)} failed, {formatCount(found.skipped)}{" "}
            skipped.
          </>
        )}
      </p>
      <DialogButtons>
        <ShowAsCode
          curl={curlOf("POST", `/webhooks/${webhookId}/recover`, { since })}
          sdk={`const recovery = await stoa.webhooks.recover("${webhookId}", { since: "${since}" });`}
        />
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="btn primary"
          disabled={recover.isPending || !total}
          onClick={() => recover.start(since)}
        >
          Recover {total === undefined ? "" : formatCount(total)} {total === 1 ? "delivery" : "deliveries"}
        </button>
      </DialogButtons>
    </Dialog>
  );
}

function useRecover(webhookId: string) {
  const client = useQueryClient();
  return useAction({
    run: async (since: string, idempotencyKey) =>
      await stoa.webhooks.recover(webhookId, { since }, { idempotencyKey }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["webhook", webhookId] }),
  });
}

const PROGRESS_MS = 1_000;

function Progress({ webhookId, started }: { webhookId: string; started: WebhookRecovery }) {
  const { data = started, error } = useQuery({
    ...recoveryQuery(webhookId, started.id),
    initialData: started,
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data?.status === "completed" ? false : PROGRESS_MS),
  });
  const { recovered, total, status } = data;
  return (
    <div className="stack" role="status">
      {error && <ErrorStrip error={error} />}
      <progress
        value={status === "completed" ? 1 : recovered}
        max={status === "completed" ? 1 : total || 1}
      />
      <p>
        {status === "completed"
          ? `${formatCount(recovered)} ${recovered === 1 ? "delivery is" : "deliveries are"} due again. The log shows their attempts.`
          : `${formatCount(recovered)} of ${formatCount(total)} are due again. It continues when you close this.`}
      </p>
    </div>
  );
}

const before = (now: number, hours: number): string => new Date(now - hours * HOUR_MS).toISOString();

/** In the reader's time zone, without one: `2026-11-22T10:02:38`. */
function toLocalInput(iso: string): string {
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
