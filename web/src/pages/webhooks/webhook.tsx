import "./webhooks.css";
import "./delivery-log.css";
import type { WebhookStats } from "@stoa/sdk";
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useMatch, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { ChevronIcon, KeyIcon, SendIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { DeliveryLog } from "../../components/webhooks/delivery-log.tsx";
import { DeliveryTimeline } from "../../components/webhooks/delivery-timeline.tsx";
import { EndpointStatus } from "../../components/webhooks/endpoint-status.tsx";
import { RecoverDialog } from "../../components/webhooks/recover-dialog.tsx";
import { RotateDialog } from "../../components/webhooks/rotate-dialog.tsx";
import { WebhookStrip } from "../../components/webhooks/webhook-strip.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration } from "../../lib/duration.ts";
import { formatCount, formatPercent } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { isInbox, nameOf, successShare } from "../../lib/webhooks.ts";
import { webhookQuery, webhookStatsQuery, webhooksQuery } from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/webhooks/$webhookId");

/** While the page is in view. */
const STATS_REFRESH_MS = 10_000;

type Shown = "recover" | "rotate" | "delete" | null;

export default function Webhook() {
  const { webhookId } = route.useParams();
  const { data: endpoint } = useSuspenseQuery(webhookQuery(webhookId));
  const { data: stats } = useSuspenseQuery({
    ...webhookStatsQuery(webhookId),
    refetchInterval: STATS_REFRESH_MS,
  });
  const [shown, show] = useState<Shown>(null);
  const isDeliveryOpen =
    useMatch({
      from: "/webhooks-shell/settings/webhooks/$webhookId/deliveries/$deliveryId",
      shouldThrow: false,
    }) !== undefined;
  const enable = useEnable(webhookId);
  useTitle(nameOf(endpoint));
  return (
    <main className={isDeliveryOpen ? "work webhook is-open" : "work webhook"} id="content">
      <nav className="crumb" aria-label="Breadcrumb">
        <Link to="/settings/webhooks">Webhooks</Link>
        <ChevronIcon size={13} />
        <span className="cut" dir="auto">
          {nameOf(endpoint)}
        </span>
      </nav>
      <div className="row between wrap under-crumb head">
        <div className="stack tight">
          <div className="row wrap">
            <h1 className="page-title" dir="auto">
              {nameOf(endpoint)}
            </h1>
            <EndpointStatus endpoint={endpoint} failingSince={stats.failingSince} />
          </div>
          <span className="row soft url-row">
            <code>{endpoint.url}</code>
            <CopyButton text={endpoint.url} label="Copy URL" className="btn quiet s" />
            {isInbox(endpoint.url) && (
              <a className="link sm" href={endpoint.url} target="_blank" rel="noopener">
                Open the inbox
              </a>
            )}
          </span>
        </div>
        <div className="row wrap actions">
          <SendTest webhookId={webhookId} isEnabled={endpoint.enabled} />
          <button type="button" className="btn" onClick={() => show("rotate")}>
            <KeyIcon /> Rotate secret
          </button>
          <Menu webhookId={webhookId} isEnabled={endpoint.enabled} show={show} enable={enable} />
        </div>
      </div>
      <WebhookStrip
        endpoint={endpoint}
        stats={stats}
        isPending={enable.isPending}
        onEnable={() => enable.mutate(true)}
        onRecover={() => show("recover")}
      />
      <Facts stats={stats} eventTypes={endpoint.eventTypes} />
      <DeliveryTimeline timeline={stats.timeline} />
      <DeliveryLog webhookId={webhookId}>
        <Outlet />
      </DeliveryLog>
      {shown === "recover" && (
        <RecoverDialog webhookId={webhookId} failingSince={stats.failingSince} onClose={() => show(null)} />
      )}
      {shown === "rotate" && <RotateDialog webhookId={webhookId} onClose={() => show(null)} />}
      {shown === "delete" && <DeleteDialog webhookId={webhookId} stats={stats} onClose={() => show(null)} />}
    </main>
  );
}

function Facts({ stats, eventTypes }: { stats: WebhookStats; eventTypes: string[] | null }) {
  const { deliveries, durationMs } = stats;
  const share = successShare(stats);
  return (
    <div className="facts">
      <div>
        <span className="label">Succeeded, 24 h</span>
        <strong>{share === null ? "None yet" : formatPercent(share)}</strong>
      </div>
      <div>
        <span className="label">Waiting</span>
        <strong>{formatCount(deliveries.pending + deliveries.retrying)}</strong>
      </div>
      <div>
        <span className="label">Median response</span>
        <strong>{durationMs.p50 === null ? "None yet" : formatDuration(durationMs.p50 / 1_000)}</strong>
      </div>
      <div>
        <span className="label">95 % within</span>
        <strong>{durationMs.p95 === null ? "None yet" : formatDuration(durationMs.p95 / 1_000)}</strong>
      </div>
      <div>
        <span className="label">Events</span>
        <strong title={eventTypes?.join(", ")}>
          {eventTypes === null ? "All" : `${eventTypes.length} ${eventTypes.length === 1 ? "type" : "types"}`}
        </strong>
      </div>
    </div>
  );
}

function SendTest({ webhookId, isEnabled }: { webhookId: string; isEnabled: boolean }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const send = useAction({
    run: async (id: string, idempotencyKey) => await stoa.webhooks.test(id, { idempotencyKey }),
    onSuccess: async ({ id: deliveryId }) => {
      showToast("Test event sent");
      void client.invalidateQueries({ queryKey: ["webhook", webhookId] });
      await navigate({
        to: "/settings/webhooks/$webhookId/deliveries/$deliveryId",
        params: { webhookId, deliveryId },
        resetScroll: false,
      });
    },
    onError: (error) => showError("The test event was not sent", error),
  });
  return (
    <button
      type="button"
      className="btn"
      disabled={send.isPending || !isEnabled}
      title={isEnabled ? undefined : "Enable the webhook first"}
      onClick={() => send.start(webhookId)}
    >
      <SendIcon /> Send test event
    </button>
  );
}

/** Changes at once, and back if the service refuses. */
function useEnable(webhookId: string) {
  const client = useQueryClient();
  const { queryKey } = webhookQuery(webhookId);
  return useMutation({
    mutationFn: async (enabled: boolean) => await stoa.webhooks.update(webhookId, { enabled }),
    onMutate: async (enabled) => {
      await client.cancelQueries({ queryKey });
      const before = client.getQueryData(queryKey);
      const disabledReason = enabled ? null : "owner";
      client.setQueryData(queryKey, (old) => old && { ...old, enabled, disabledReason });
      return before;
    },
    onSuccess: (_endpoint, enabled) => {
      if (enabled) showToast("Webhook enabled. Recover sends what was skipped.");
    },
    onError: (error, _enabled, before) => {
      client.setQueryData(queryKey, before);
      showError("The webhook was not changed", error);
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey }),
        client.invalidateQueries({ queryKey: webhooksQuery.queryKey }),
      ]),
  });
}

interface MenuProps {
  webhookId: string;
  isEnabled: boolean;
  show: (shown: Shown) => void;
  enable: ReturnType<typeof useEnable>;
}

function Menu({ webhookId, isEnabled, show, enable }: MenuProps) {
  const navigate = useNavigate();
  const disable = () => {
    enable.mutate(false, {
      onSuccess: () =>
        showToast("Webhook disabled. Events are skipped meanwhile.", { undo: () => enable.mutate(true) }),
    });
  };
  return (
    <>
      <ShowAsCode
        curl={curlOf("POST", `/webhooks/${webhookId}/test`)}
        sdk={`await stoa.webhooks.test("${webhookId}");\nconst deliveries = await stoa.webhooks.deliveries("${webhookId}").page();`}
      />
      <RowMenu
        label="More for this webhook"
        actions={[
          {
            label: "Edit",
            onSelect: () =>
              void navigate({ to: "/settings/webhooks/$webhookId/edit", params: { webhookId } }),
          },
          { label: "Recover since a time…", isDisabled: !isEnabled, onSelect: () => show("recover") },
          isEnabled
            ? { label: "Disable", onSelect: disable }
            : { label: "Enable", onSelect: () => enable.mutate(true) },
          { label: "Delete…", isDestructive: true, onSelect: () => show("delete") },
        ]}
      />
    </>
  );
}

function DeleteDialog({
  webhookId,
  stats,
  onClose,
}: {
  webhookId: string;
  stats: WebhookStats;
  onClose: () => void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: endpoint } = useQuery(webhookQuery(webhookId));
  const remove = useMutation({
    mutationFn: async () => await stoa.webhooks.delete(webhookId),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: webhooksQuery.queryKey });
      showToast("Webhook deleted");
      await navigate({ to: "/settings/webhooks" });
    },
    onError: (error) => {
      showError("The webhook was not deleted", error);
      onClose();
    },
  });
  const waiting = stats.deliveries.pending + stats.deliveries.retrying;
  return (
    <ConfirmDialog
      title={`Delete ${endpoint ? nameOf(endpoint) : "this webhook"}?`}
      action="Delete webhook"
      keep="Keep it"
      isPending={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        {waiting === 0
          ? "No delivery waits."
          : `${formatCount(waiting)} waiting ${waiting === 1 ? "delivery is" : "deliveries are"} canceled.`}{" "}
        Later events are not sent, and the secret is deleted. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
