import "./events-drawer.css";
import type { Event } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { EVENT_TYPES } from "../../lib/event-types.ts";
import { useNow } from "../../lib/use-now.ts";
import { newestEventsQuery } from "../../queries/webhooks.ts";
import { FilterSelect } from "../filters.tsx";
import { CloseIcon } from "../icons.tsx";
import { LiveSwitch } from "../live-switch.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { Time } from "../time.tsx";
import { ConnectionState, summaryOf, useLiveEvents } from "./live-events.tsx";

const CLOCK_MS = 10_000;

/** The events of the account beside the page that causes them. Not modal: the page stays usable. */
export default function EventsDrawer({ onClose }: { onClose: () => void }) {
  const [type, setType] = useState<string>();
  const { data, error, refetch } = useQuery(newestEventsQuery(type));
  const drawer = useRef<HTMLElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    drawer.current?.focus();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  const closeByEscape = ({ key }: KeyboardEvent) => {
    if (key === "Escape") onClose();
  };
  return (
    <section
      ref={drawer}
      className="events-drawer"
      aria-label="Live events"
      tabIndex={-1}
      onKeyDown={closeByEscape}
    >
      {data ? (
        <LiveEvents key={type ?? "all"} first={data.data} type={type} onType={setType} onClose={onClose} />
      ) : (
        <>
          <Head type={type} onType={setType} onClose={onClose} />
          {error ? <ErrorStrip error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}
        </>
      )}
    </section>
  );
}

interface HeadProps {
  type: string | undefined;
  onType: (type: string | undefined) => void;
  onClose: () => void;
  children?: ReactNode;
}

const Head = ({ type, onType, onClose, children }: HeadProps) => (
  <div className="row wrap">
    <h2 className="small-heading">Live events</h2>
    <FilterSelect
      label="Event type"
      none="Any event type"
      value={type}
      options={EVENT_TYPES.map((each) => [each.type, each.type])}
      onChange={onType}
    />
    <span className="grow" />
    {children}
    <Link to="/settings/events" search={type === undefined ? {} : { type }} className="link sm">
      All events
    </Link>
    <button type="button" className="iconb" aria-label="Close" onClick={onClose}>
      <CloseIcon />
    </button>
  </div>
);

function LiveEvents({ first, ...head }: HeadProps & { first: Event[] }) {
  const { events, state, error, setLive, retry } = useLiveEvents(first, head.type);
  useNow(CLOCK_MS);
  return (
    <>
      <Head {...head}>
        <ConnectionState state={state} />
        <LiveSwitch isLive={state !== "paused"} onChange={setLive} />
      </Head>
      {error !== null && <ErrorStrip error={error} onRetry={retry} />}
      {error === null && events.length === 0 && (
        <p className="soft sm">No events yet. What happens in your account appears here by itself.</p>
      )}
      {events.length > 0 && (
        <ul>
          {events.map((event) => (
            <li key={event.id} className="sm">
              <Link to="/settings/events" search={{ open: event.id }} className="link m cut">
                {event.type}
              </Link>
              <span className="soft cut" dir="auto">
                {summaryOf(event)}
              </span>
              <Time iso={event.created} className="soft" />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
