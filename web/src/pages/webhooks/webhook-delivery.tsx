import "./webhooks.css";
import "./delivery-log.css";
import type { DeliveryAttempt, WebhookDeliveryDetail } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { stoa } from "../../api.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { RefreshIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { JsonText } from "../../components/json-text.tsx";
import { PaneBack } from "../../components/pane-back.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration } from "../../lib/duration.ts";
import { formatClock, formatExactTime, formatMoment } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useKeys } from "../../lib/use-keys.ts";
import { useNow } from "../../lib/use-now.ts";
import { attemptOf, nextTimeOf, resultOf, segmentsOf, statusLine } from "../../lib/webhooks.ts";
import { deliveryQuery } from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/webhooks/$webhookId/deliveries/$deliveryId");

const REFRESH_MS = 2_000;
const CLOCK_MS = 5_000;

/** One delivery: beside the log, or in its place on small screens. */
export default function Delivery() {
  const { webhookId, deliveryId } = route.useParams();
  const { data: delivery } = useSuspenseQuery({
    ...deliveryQuery(deliveryId),
    refetchInterval: ({ state }) => (isMoving(state.data) ? REFRESH_MS : false),
  });
  useFreshLog(delivery);
  // Also begins to refresh when the next attempt comes near.
  useNow(CLOCK_MS);
  const navigate = useNavigate();
  useKeys({
    Escape: () =>
      void navigate({ to: "/settings/webhooks/$webhookId", params: { webhookId }, search: true as never }),
  });
  return (
    <>
      <Link
        to="/settings/webhooks/$webhookId"
        params={{ webhookId }}
        search={true as never}
        className="link row back"
      >
        <PaneBack>All deliveries</PaneBack>
      </Link>
      <Head delivery={delivery} />
      <Attempts delivery={delivery} />
      <AttemptDetail key={delivery.id} delivery={delivery} />
      <ShowAsCode
        curl={curlOf("POST", `/deliveries/${delivery.id}/retry`)}
        sdk={`const { attempts } = await stoa.deliveries.get("${delivery.id}");\nawait stoa.deliveries.retry("${delivery.id}");`}
      />
    </>
  );
}

/** The log beside it shows a new attempt at once. */
function useFreshLog({ endpointId, attempt, status }: WebhookDeliveryDetail): void {
  const client = useQueryClient();
  const shown = useRef(`${attempt} ${status}`);
  useEffect(() => {
    if (shown.current === `${attempt} ${status}`) return;
    shown.current = `${attempt} ${status}`;
    void client.invalidateQueries({ queryKey: ["webhook", endpointId] });
  }, [client, endpointId, attempt, status]);
}

/** Whether an attempt is due within the next seconds or under way. */
const isMoving = (delivery: WebhookDeliveryDetail | undefined): boolean =>
  delivery?.nextAttemptAt != null && Date.parse(delivery.nextAttemptAt) - Date.now() < 60_000;

function Head({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { id, eventType, eventId } = delivery;
  const resend = useResend(delivery);
  const send = () => resend.start(delivery.id);
  useKeys({ r: send });
  return (
    <div className="row between wrap">
      <div className="stack tight">
        <h2 className="h3">{eventType}</h2>
        <span className="row wrap sm">
          <Id id={id} /> <Id id={eventId} />
        </span>
      </div>
      <button
        type="button"
        className="btn s"
        disabled={resend.isPending}
        onClick={send}
        aria-keyshortcuts="r"
      >
        <RefreshIcon /> Send again <span className="kbd desk">R</span>
      </button>
    </div>
  );
}

function useResend({ id, endpointId }: WebhookDeliveryDetail) {
  const client = useQueryClient();
  return useAction({
    run: async (deliveryId: string, idempotencyKey) =>
      await stoa.deliveries.retry(deliveryId, { idempotencyKey }),
    onSuccess: () => {
      showToast("Sent again");
      void client.invalidateQueries({ queryKey: deliveryQuery(id).queryKey });
      void client.invalidateQueries({ queryKey: ["webhook", endpointId, "deliveries"] });
    },
    onError: (error) => showError("It was not sent again", error),
  });
}

function Attempts({ delivery: { attempts, nextAttemptAt, status } }: { delivery: WebhookDeliveryDetail }) {
  const counted = attempts.filter(({ late }) => !late);
  const last = counted.at(-1);
  const segments = segmentsOf(
    counted.map(({ error }) => error === null),
    nextAttemptAt !== null,
  );
  const sentence = last
    ? `Attempt ${attemptOf(last.n)} ${last.error === null ? "succeeded" : "failed"}`
    : ({ skipped: "Skipped: the webhook was disabled", canceled: "Canceled" }[status as "skipped"] ??
      "No attempt yet");
  return (
    <div className="stack">
      <div className="row between wrap sm" role="status">
        <span className="m">{sentence}</span>
        {nextAttemptAt !== null && (
          <span className="soft num" title={formatExactTime(nextAttemptAt)}>
            next {nextTimeOf(nextAttemptAt)}, {formatClock(nextAttemptAt)}
          </span>
        )}
        {nextAttemptAt === null && last?.error && <span className="soft">no further attempt</span>}
      </div>
      <div className="att" role="img" aria-label={describeSegments(segments)}>
        {segments.map((segment, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: they never change places
          <i key={n} className={segment} />
        ))}
      </div>
    </div>
  );
}

function describeSegments(segments: string[]): string {
  const count = (name: string) => segments.filter((each) => each === name).length;
  const parts = (["failed", "succeeded", "scheduled"] as const).flatMap((name) =>
    count(name) > 0 ? `${count(name)} ${name}` : [],
  );
  return `Attempts: ${parts.join(", ") || "none"}`;
}

const TABS = ["Request", "Response", "Signature"] as const;
type Tab = (typeof TABS)[number];

function AttemptDetail({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const [chosen, choose] = useState<number | null>(null);
  const [tab, setTab] = useState<Tab>("Request");
  const newestFirst = delivery.attempts.toReversed();
  const attempt = newestFirst.find((_each, at) => newestFirst.length - 1 - at === chosen) ?? newestFirst[0];
  if (!attempt) return null;
  return (
    <>
      <ul className="atts sm">
        {newestFirst.map((each, at) => (
          <li key={`${each.n} ${each.at}`}>
            <button
              type="button"
              aria-pressed={each === attempt}
              onClick={() => choose(newestFirst.length - 1 - at)}
            >
              <span className="b">{each.n}</span>
              <span className={each.error ? "bad m" : "good m"}>
                {resultLine(each)}
                {each.late && <span className="soft"> late, no effect</span>}
              </span>
              <span className="soft">{formatDuration(each.durationMs / 1_000)}</span>
              <time className="soft" dateTime={each.at} title={formatExactTime(each.at)}>
                {isToday(each.at) ? formatClock(each.at) : formatMoment(each.at)}
              </time>
            </button>
          </li>
        ))}
      </ul>
      {attempt.error && <p className="sm">{attempt.error.message}</p>}
      <Tabs tab={tab} onChange={setTab}>
        {tab === "Request" && <RequestPart attempt={attempt} />}
        {tab === "Response" && <ResponsePart attempt={attempt} />}
        {tab === "Signature" && <SignaturePart delivery={delivery} attempt={attempt} />}
      </Tabs>
    </>
  );
}

const isToday = (iso: string): boolean => new Date(iso).toDateString() === new Date().toDateString();

const resultLine = ({ response, error }: DeliveryAttempt): string =>
  response ? statusLine(response.status) : resultOf(null, error?.code ?? null);

function Tabs({ tab, onChange, children }: { tab: Tab; onChange: (tab: Tab) => void; children: ReactNode }) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = ({ key }: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const at = (TABS.indexOf(tab) + step + TABS.length) % TABS.length;
    onChange(TABS[at] ?? tab);
    list.current?.querySelectorAll("button")[at]?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label="Parts of the attempt" ref={list} onKeyDown={onKeyDown}>
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`tab-${each}`}
            aria-controls="attempt-part"
            aria-selected={each === tab}
            tabIndex={each === tab ? 0 : -1}
            className={each === tab ? "on" : ""}
            onClick={() => onChange(each)}
          >
            {each}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="attempt-part" aria-labelledby={`tab-${tab}`} className="stack">
        {children}
      </div>
    </>
  );
}

function RequestPart({ attempt: { request } }: { attempt: DeliveryAttempt }) {
  return (
    <>
      <Headers first={`POST ${request.url}`} headers={request.headers} />
      <Body text={request.body} />
    </>
  );
}

function ResponsePart({ attempt: { response, error } }: { attempt: DeliveryAttempt }) {
  if (!response) return <p className="soft">{error?.message ?? "There was no response."}</p>;
  return (
    <>
      <Headers first={statusLine(response.status)} headers={response.headers} />
      {response.body === "" ? <p className="soft sm">The body is empty.</p> : <Body text={response.body} />}
    </>
  );
}

const Headers = ({ first, headers }: { first: string; headers: Record<string, string> }) => (
  <pre className="codeblock wrap">
    <b>{first}</b>
    {Object.entries(headers).map(([name, value]) => (
      <span key={name}>
        {"\n"}
        <span className="k">{name.toLowerCase()}</span>: {value}
      </span>
    ))}
  </pre>
);

const Body = ({ text }: { text: string }) => (
  <div className="stack">
    <div className="row between">
      <span className="label">Body, {new TextEncoder().encode(text).length} bytes</span>
      <CopyButton text={text} label="Copy body" className="btn quiet s" />
    </div>
    <JsonText text={text} />
  </div>
);

function SignaturePart({
  delivery,
  attempt: { n, request },
}: {
  delivery: WebhookDeliveryDetail;
  attempt: DeliveryAttempt;
}) {
  const header = (name: string) =>
    Object.entries(request.headers).find(([each]) => each.toLowerCase() === name)?.[1] ?? "";
  const start = `${header("webhook-id")}.${header("webhook-timestamp")}.`;
  return (
    <>
      <p className="sm soft">
        <code>webhook-signature</code> is the HMAC-SHA256 of this text, with the decoded part of the secret
        after <code>whsec_</code> as the key:
      </p>
      <pre className="codeblock wrap">
        <span className="k">{start}</span>
        {request.body}
      </pre>
      <p className="label">Signature sent</p>
      <pre className="codeblock wrap">{header("webhook-signature")}</pre>
      <Link to="/settings/signatures" search={{ delivery: delivery.id, attempt: n }} className="btn">
        Check it in the signature debugger
      </Link>
    </>
  );
}
