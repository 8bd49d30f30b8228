import type { WebhookDelivery } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate, useParams } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { formatDuration } from "../../lib/duration.ts";
import { EVENT_TYPES } from "../../lib/event-types.ts";
import { formatCount, formatExactTime, formatTime } from "../../lib/format.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useNow } from "../../lib/use-now.ts";
import { attemptOf, labelOf, nextTimeOf, toneOf } from "../../lib/webhooks.ts";
import { ROWS_PER_PAGE } from "../../member-requests.ts";
import {
  DELIVERY_STATUSES,
  type DeliverySearch,
  deliveriesQuery,
  deliveryQuery,
  PERIODS,
  RESPONSE,
} from "../../queries/webhooks.ts";
import { EmptyState } from "../empty-state.tsx";
import { FilterSelect, FilterText } from "../filters.tsx";
import { LiveSwitch } from "../live-switch.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { StatusTag } from "../status-tag.tsx";

const route = getRouteApi("/webhooks-shell/settings/webhooks/$webhookId");

const LIVE_MS = 3_000;
const CLOCK_MS = 5_000;

const CALLBACK_TYPES = ["execution.completed", "execution.failed", "execution.canceled", "execution.waiting"];
const TYPES = [...EVENT_TYPES.map(({ type }) => type), ...CALLBACK_TYPES];

const RESPONSES = ["2xx", "3xx", "4xx", "5xx", "none"];

/** The deliveries of an endpoint; `children` is the one that is open, beside the list or in its place on small screens. */
export function DeliveryLog({ webhookId, children }: { webhookId: string; children: ReactNode }) {
  const search = route.useSearch();
  const isFirstPage = search.before === undefined;
  const [isLive, setLive] = useState(true);
  const { data, error, isPlaceholderData, refetch } = useQuery({
    ...deliveriesQuery(webhookId, search),
    refetchInterval: isLive && isFirstPage ? LIVE_MS : false,
  });
  const deliveries = data?.data ?? [];
  const { deliveryId } = useParams({ strict: false }) as { deliveryId?: string };
  useFreshDelivery(deliveries.find(({ id }) => id === deliveryId));
  useListKeys();
  useNow(CLOCK_MS);
  return (
    <section aria-label="Deliveries">
      <Filters search={search} deliveries={deliveries}>
        {isFirstPage && <LiveSwitch isLive={isLive} onChange={setLive} />}
      </Filters>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      <div className={isPlaceholderData ? "split loading" : "split"} aria-busy={isPlaceholderData}>
        <div className="list">
          {data === undefined && !error && <SkeletonRows />}
          {data?.data.length === 0 && <NoDeliveries isFiltered={Object.keys(search).length > 0} />}
          {deliveries.length > 0 && (
            <Table webhookId={webhookId} deliveries={deliveries} openId={deliveryId} search={search} />
          )}
        </div>
        <aside className="insp" aria-label="Delivery">
          {deliveryId === undefined ? <p className="soft">Open a delivery to see its attempts.</p> : children}
        </aside>
      </div>
      {data && <Foot page={data} search={search} />}
    </section>
  );
}

/** The delivery that is open follows its row: a recovery, or somebody else, may have sent it again. */
function useFreshDelivery(row: WebhookDelivery | undefined): void {
  const client = useQueryClient();
  const { id, status, attempt, nextAttemptAt } = row ?? {};
  useEffect(() => {
    if (id === undefined) return;
    const { queryKey } = deliveryQuery(id);
    const shown = client.getQueryData(queryKey);
    const isSame =
      shown?.status === status && shown?.attempt === attempt && shown?.nextAttemptAt === nextAttemptAt;
    if (shown && !isSame) void client.invalidateQueries({ queryKey });
  }, [client, id, status, attempt, nextAttemptAt]);
}

function useChange() {
  const navigate = useNavigate();
  /** Any change of a filter leads to the first page; the open delivery stays open. */
  return (changes: Partial<Record<keyof DeliverySearch, string | undefined>>) =>
    void navigate({
      to: ".",
      search: ((old: DeliverySearch) => ({ ...old, before: undefined, ...changes })) as never,
      resetScroll: false,
    });
}

interface FiltersProps {
  search: DeliverySearch;
  deliveries: WebhookDelivery[];
  children: ReactNode;
}

function Filters({ search, deliveries, children }: FiltersProps) {
  const change = useChange();
  const navigate = useNavigate();
  const findId = (id: string | undefined) => {
    if (id?.startsWith("dlv_"))
      void navigate({ to: "/settings/deliveries/$deliveryId", params: { deliveryId: id } });
    else change({ event: id });
  };
  const seen = deliveries.flatMap(({ lastAttempt }) => lastAttempt?.responseStatus ?? []).map(String);
  const responses = [
    ...new Set([...RESPONSES, ...seen.sort(), ...(search.response ? [search.response] : [])]),
  ];
  return (
    <search className="row wrap filters">
      <FilterText
        label="Event or delivery id"
        placeholder="Event or delivery id"
        value={search.event}
        onChange={findId}
      />
      <FilterSelect
        label="Status"
        none="Any status"
        value={search.status}
        options={DELIVERY_STATUSES.map((status) => [status, status])}
        onChange={(status) => change({ status })}
      />
      <FilterSelect
        label="Event type"
        none="Any event type"
        value={search.type}
        options={TYPES.map((type) => [type, type])}
        onChange={(type) => change({ type })}
      />
      <FilterSelect
        label="HTTP status"
        none="Any HTTP status"
        value={search.response}
        options={responses
          .filter((response) => RESPONSE.test(response))
          .map((response) => [response, response === "none" ? "no response" : response])}
        onChange={(response) => change({ response })}
      />
      <FilterSelect
        label="Time"
        none="30 days"
        value={search.within}
        options={Object.entries(PERIODS)}
        onChange={(within) => change({ within })}
      />
      <span className="grow" />
      {children}
    </search>
  );
}

function NoDeliveries({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState
        title="No delivery matches"
        action={
          <Link to="." search={{} as never} className="btn">
            Remove the filters
          </Link>
        }
      >
        Filters by type and HTTP status search the newest 10,000 deliveries.
      </EmptyState>
    );
  return (
    <EmptyState title="No deliveries yet">
      They appear here as soon as an event of your account happens. Send test event shows one now.
    </EmptyState>
  );
}

interface TableProps {
  webhookId: string;
  deliveries: WebhookDelivery[];
  openId: string | undefined;
  search: DeliverySearch;
}

const Table = ({ webhookId, deliveries, openId, search }: TableProps) => (
  <table className="log deliveries">
    <thead>
      <tr>
        <th>Response</th>
        <th>Event</th>
        <th className="r">Attempt</th>
        <th className="r">Duration</th>
        <th>Next try</th>
        <th className="r">Created</th>
      </tr>
    </thead>
    <tbody>
      {deliveries.map((delivery) => (
        <tr key={delivery.id} className={rowClassOf(delivery, openId)}>
          <td>
            <StatusTag tone={toneOf(delivery)}>{labelOf(delivery)}</StatusTag>
          </td>
          <td>
            <Link
              to="/settings/webhooks/$webhookId/deliveries/$deliveryId"
              params={{ webhookId, deliveryId: delivery.id }}
              search={search}
              className="row-link m"
              aria-current={delivery.id === openId ? "true" : undefined}
              resetScroll={false}
              data-row
            >
              {delivery.eventType}
            </Link>
          </td>
          <td className="r soft">{delivery.attempt > 0 && attemptOf(delivery.attempt)}</td>
          <td className="r soft">
            {delivery.lastAttempt && formatDuration(delivery.lastAttempt.durationMs / 1_000)}
          </td>
          <td>
            {delivery.nextAttemptAt ? (
              nextTimeOf(delivery.nextAttemptAt)
            ) : (
              <span className="faint">none</span>
            )}
          </td>
          <td className="r soft">
            <time dateTime={delivery.createdAt} title={formatExactTime(delivery.createdAt)}>
              {formatTime(delivery.createdAt)}
            </time>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const rowClassOf = ({ id, nextAttemptAt }: WebhookDelivery, openId: string | undefined) =>
  [id === openId && "on", nextAttemptAt !== null && "wait"].filter(Boolean).join(" ");

interface FootProps {
  page: { data: WebhookDelivery[]; meta: { total: number; totalIsEstimate?: true } };
  search: DeliverySearch;
}

/** The total of a later page counts from there on. */
function Foot({ page: { data, meta }, search }: FootProps) {
  const last = data.at(-1);
  if (!last && search.before === undefined) return null;
  const total = `${meta.totalIsEstimate ? "at least " : ""}${formatCount(meta.total)}`;
  const hasOlder = last !== undefined && data.length === ROWS_PER_PAGE && meta.total > data.length;
  return (
    <div className="row between sm soft foot-row">
      <span>
        {formatCount(data.length)} of {total} {search.before === undefined ? "shown" : "older ones shown"},
        stored for 30 days
      </span>
      <span className="row">
        {search.before !== undefined && (
          <Link to="." search={{ ...search, before: undefined } as never} className="btn s">
            Newest
          </Link>
        )}
        {hasOlder && (
          <Link to="." search={{ ...search, before: last.id } as never} className="btn s" rel="next">
            Older
          </Link>
        )}
      </span>
    </div>
  );
}
