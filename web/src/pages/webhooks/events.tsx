import "./webhooks.css";
import "./delivery-log.css";
import type { Event } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { CopyButton } from "../../components/copy-button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { Id } from "../../components/id.tsx";
import { JsonText } from "../../components/json-text.tsx";
import { LiveSwitch } from "../../components/live-switch.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { PaneBack } from "../../components/pane-back.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import {
  ConnectionState,
  type ShownEvent,
  summaryOf,
  useLiveEvents,
} from "../../components/webhooks/live-events.tsx";
import { EVENT_TYPES } from "../../lib/event-types.ts";
import { formatCount, formatExactTime, formatTime } from "../../lib/format.ts";
import { useKeys, useListKeys } from "../../lib/use-keys.ts";
import { useNow } from "../../lib/use-now.ts";
import { useTitle } from "../../lib/use-title.ts";
import { type EventsSearch, eventQuery, newestEventsQuery } from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/events");

const CLOCK_MS = 10_000;
export default function Events() {
  const { type } = route.useSearch();
  useTitle("Live events");
  const { data, error, refetch } = useQuery(newestEventsQuery(type));
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Live events</h1>
        <ShowAsCode
          curl={`curl -N "${location.origin}/v1/events/stream${type ? `?types=${type}` : ""}" \\\n  -H "Authorization: Bearer $STOA_API_KEY"`}
          sdk={`for await (const event of stoa.events.listen(${type ? `{ types: ["${type}"] }` : ""})) {\n  console.log(event.type, event.data);\n}`}
        />
      </div>
      <p className="soft sm intro">
        What happens in your account, as it happens: the same events that webhooks deliver, stored for 30
        days.
      </p>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {data ? (
        <EventLog key={type ?? "all"} first={data.data} />
      ) : (
        <>
          <div className="row wrap filters">
            <TypeFilter />
          </div>
          {!error && <SkeletonRows />}
        </>
      )}
    </main>
  );
}

function EventLog({ first }: { first: Event[] }) {
  const { type, q, open } = route.useSearch();
  const navigate = route.useNavigate();
  const { events, state, error, setLive, retry } = useLiveEvents(first, type);
  useListKeys();
  useNow(CLOCK_MS);
  const listed = events.filter((event) => q === undefined || matches(event, q));
  const shown = useOpenEvent(events, open);
  return (
    <section aria-label="Events" className={shown ? "is-open" : ""}>
      <div className="row wrap filters">
        <TypeFilter />
        <FilterText
          label="Text in the event"
          placeholder="Text in the event"
          value={q}
          onChange={(text) => void navigate({ search: (old) => ({ ...old, q: text }), resetScroll: false })}
        />
        <span className="grow" />
        <ConnectionState state={state} />
        <LiveSwitch isLive={state !== "paused"} onChange={setLive} />
      </div>
      {error !== null && <ErrorStrip error={error} onRetry={retry} />}
      <div className={shown ? "split" : "split closed"}>
        <div className="list">
          {listed.length === 0 ? (
            <NoEvents type={type} q={q} />
          ) : (
            <EventTable events={listed} openId={open} />
          )}
        </div>
        {shown && (
          <aside className="insp" aria-label="Event">
            <EventDetail event={shown} />
          </aside>
        )}
      </div>
      {listed.length > 0 && (
        <p className="sm soft foot-row">
          {formatCount(listed.length)} {listed.length === 1 ? "event" : "events"} shown
        </p>
      )}
    </section>
  );
}

/** The open event, also if it is older than those of the list. */
function useOpenEvent(events: ShownEvent[], id: string | undefined): ShownEvent | undefined {
  const listed = events.find((event) => event.id === id);
  const { data } = useQuery({ ...eventQuery(id ?? ""), enabled: id !== undefined && listed === undefined });
  return listed ?? (id === undefined ? undefined : data);
}

function TypeFilter() {
  const { type } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <FilterSelect
      label="Event type"
      none="Any event type"
      value={type}
      options={EVENT_TYPES.map((each) => [each.type, each.type])}
      onChange={(chosen) => void navigate({ search: chosen === undefined ? {} : { type: chosen } })}
    />
  );
}

/** In the whole event, in any case. */
const matches = (event: ShownEvent, text: string): boolean =>
  JSON.stringify(event).toLowerCase().includes(text.toLowerCase());

function NoEvents({ type, q }: { type: string | undefined; q: string | undefined }) {
  if (q !== undefined)
    return (
      <EmptyState
        title={`No event here has the text “${q}”`}
        action={
          <Link to="/settings/events" search={type === undefined ? {} : { type }} className="btn">
            Remove the text
          </Link>
        }
      >
        The newest events are searched, and those that come.
      </EmptyState>
    );
  if (type !== undefined)
    return (
      <EmptyState
        title={`No event of the type ${type}`}
        action={
          <Link to="/settings/events" className="btn">
            Show all types
          </Link>
        }
      >
        The next one appears here by itself.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No events yet"
      action={
        <Link to="/settings/webhooks" className="btn">
          Send a test event from a webhook
        </Link>
      }
      curl={`curl -N ${location.origin}/v1/events/stream \\\n  -H "Authorization: Bearer $STOA_API_KEY"`}
    >
      Publish, buy or review a product, and its event appears here by itself.
    </EmptyState>
  );
}

const EventTable = ({ events, openId }: { events: ShownEvent[]; openId: string | undefined }) => (
  <table className="log events">
    <thead>
      <tr>
        <th>Type</th>
        <th>About</th>
        <th className="r">Time</th>
      </tr>
    </thead>
    <tbody>
      {events.map((event) => (
        <tr key={event.id} className={event.id === openId ? "on" : ""}>
          <td>
            <Link
              to="/settings/events"
              search={(old: EventsSearch) => ({ ...old, open: event.id })}
              className="row-link m"
              aria-current={event.id === openId ? "true" : undefined}
              resetScroll={false}
              replace
              data-row
            >
              {event.type}
            </Link>
          </td>
          <td className="soft cut" dir="auto">
            {summaryOf(event)}
          </td>
          <td className="r soft">
            <time dateTime={event.created} title={formatExactTime(event.created)}>
              {formatTime(event.created)}
            </time>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

function EventDetail({ event }: { event: ShownEvent }) {
  const navigate = route.useNavigate();
  const close = (old: EventsSearch): EventsSearch => ({ ...old, open: undefined });
  useKeys({ Escape: () => void navigate({ search: close, resetScroll: false }) });
  const text = JSON.stringify(event);
  return (
    <>
      <Link to="/settings/events" search={close} className="link row back">
        <PaneBack>All events</PaneBack>
      </Link>
      <div className="row between wrap">
        <div className="stack tight">
          <h2 className="h3">{event.type}</h2>
          <Id id={event.id} />
        </div>
        <CopyButton text={text} label="Copy event" />
      </div>
      <JsonText text={text} />
    </>
  );
}
