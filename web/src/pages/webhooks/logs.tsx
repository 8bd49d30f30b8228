import "./webhooks.css";
import "./delivery-log.css";
import { errorRemedies } from "@stoa/contract/errors";
import type { ApiKey, LoggedRequest } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useRef, useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterChip, FilterSelect, FilterText } from "../../components/filters.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { LiveSwitch } from "../../components/live-switch.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { PaneBack } from "../../components/pane-back.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration } from "../../lib/duration.ts";
import { formatCount, formatExactTime, formatTime } from "../../lib/format.ts";
import { type ErrorGroup, groupErrors } from "../../lib/group-errors.ts";
import { useKeys, useListKeys } from "../../lib/use-keys.ts";
import { useNow } from "../../lib/use-now.ts";
import { useTitle } from "../../lib/use-title.ts";
import { statusLine } from "../../lib/webhooks.ts";
import { ROWS_PER_PAGE } from "../../member-requests.ts";
import {
  apiKeysQuery,
  CREDENTIALS,
  credentialOf,
  errorsQuery,
  type LogSearch,
  METHODS,
  PERIODS,
  requestsQuery,
} from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/logs");

const LIVE_MS = 5_000;
const CLOCK_MS = 10_000;

export default function Logs() {
  const search = route.useSearch();
  useTitle("Request log");
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Request log</h1>
        <ShowAsCode {...codeOf(search)} />
      </div>
      <p className="soft sm intro">
        Your API requests of the last 7 days, about a second after their responses. Bodies, queries and keys
        are not stored.
      </p>
      <RequestLog search={search} />
    </main>
  );
}

function codeOf(search: LogSearch) {
  const { method, status, path, key, code, requestId } = search;
  const credential = credentialOf(search);
  const filters = { method, status, path, apiKeyId: key, credential, errorCode: code, requestId };
  const set = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  const query = new URLSearchParams(set as [string, string][]).toString();
  const sdkQuery = set.length === 0 ? "" : JSON.stringify(Object.fromEntries(set));
  return {
    curl: `curl "${location.origin}/v1/request-logs${query && `?${query}`}" \\\n  -H "Authorization: Bearer $STOA_API_KEY"`,
    sdk: `const { data } = await stoa.requestLogs.list(${sdkQuery}).page();`,
  };
}

function RequestLog({ search }: { search: LogSearch }) {
  const isFirstPage = search.before === undefined;
  const [isLive, setLive] = useState(true);
  const interval = isLive && isFirstPage ? LIVE_MS : false;
  const { data, error, isPlaceholderData, refetch } = useQuery({
    ...requestsQuery(search),
    refetchInterval: interval,
  });
  const requests = data?.data ?? [];
  const { data: keys } = useSuspenseQuery(apiKeysQuery);
  useListKeys();
  useNow(CLOCK_MS);
  const nameOf = (id: string | null) => keys.find((key) => key.id === id)?.name ?? id ?? "";
  const open = useOpenRequest(requests, search.open);
  return (
    <section aria-label="Requests" className={open ? "is-open" : ""}>
      <Filters search={search} keys={keys}>
        {isFirstPage && <LiveSwitch isLive={isLive} onChange={setLive} />}
      </Filters>
      <ErrorGroups search={search} nameOf={nameOf} />
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      <div
        className={["split", !open && "closed", isPlaceholderData && "loading"].filter(Boolean).join(" ")}
        aria-busy={isPlaceholderData}
      >
        <div className="list">
          {data === undefined && !error && <SkeletonRows />}
          {data?.data.length === 0 && <NoRequests isFiltered={Object.keys(search).length > 0} />}
          {requests.length > 0 && <RequestTable requests={requests} openId={search.open} nameOf={nameOf} />}
        </div>
        {open && (
          <aside className="insp" aria-label="Request">
            <RequestDetail request={open} nameOf={nameOf} />
          </aside>
        )}
      </div>
      <Foot requests={requests} search={search} />
    </section>
  );
}

/** The open request stays when newer ones move it to the next page. */
function useOpenRequest(requests: LoggedRequest[], id: string | undefined): LoggedRequest | undefined {
  const listed = requests.find((request) => request.id === id);
  const last = useRef(listed);
  if (listed) last.current = listed;
  return id !== undefined && last.current?.id === id ? last.current : undefined;
}

function useChange() {
  const navigate = route.useNavigate();
  /** Any change of a filter leads to the first page. */
  return (changes: Partial<Record<keyof LogSearch, string | undefined>>) =>
    void navigate({
      search: (old: LogSearch) => ({ ...old, before: undefined, open: undefined, ...changes }) as LogSearch,
      resetScroll: false,
    });
}

const CLASSES = ["2xx", "4xx", "5xx"];

function Filters({ search, keys, children }: { search: LogSearch; keys: ApiKey[]; children: ReactNode }) {
  const change = useChange();
  return (
    <search className="row wrap filters">
      {CLASSES.map((each) => (
        <button
          key={each}
          type="button"
          className={search.status === each ? "chip on" : "chip"}
          aria-pressed={search.status === each}
          onClick={() => change({ status: search.status === each ? undefined : each })}
        >
          {each}
        </button>
      ))}
      {search.status !== undefined && !CLASSES.includes(search.status) && (
        <FilterChip text={search.status} onRemove={() => change({ status: undefined })} />
      )}
      {search.code !== undefined && (
        <FilterChip text={search.code} onRemove={() => change({ code: undefined })} />
      )}
      <FilterSelect
        label="Method"
        none="Any method"
        value={search.method}
        options={METHODS.map((method) => [method, method])}
        onChange={(method) => change({ method })}
      />
      <FilterText
        label="Path"
        placeholder="/v1/products"
        value={search.path}
        onChange={(path) => change({ path })}
      />
      <FilterText
        label="Request id"
        placeholder="Request id"
        value={search.requestId}
        onChange={(requestId) => change({ requestId })}
      />
      <FilterSelect
        label="Sent by"
        none="API keys"
        value={search.by}
        options={Object.entries(CREDENTIALS)}
        onChange={(by) => change({ by, key: undefined })}
      />
      {keys.length > 0 && search.by === undefined && (
        <FilterSelect
          label="API key"
          none="Any key"
          value={search.key}
          options={keys.map(({ id, name }) => [id, name])}
          onChange={(key) => change({ key })}
        />
      )}
      <FilterSelect
        label="Time"
        none="7 days"
        value={search.within}
        options={Object.entries(PERIODS).filter(([period]) => period !== "7d")}
        onChange={(within) => change({ within })}
      />
      <span className="grow" />
      {children}
    </search>
  );
}

const SHOWN_GROUPS = 3;

interface Named {
  /** The name of an API key by its id. */
  nameOf: (id: string | null) => string;
}

/** The most frequent errors. Hidden while one of them is shown alone. */
function ErrorGroups({ search, nameOf }: { search: LogSearch } & Named) {
  const { data: errors = [] } = useQuery(errorsQuery(search));
  const change = useChange();
  if (search.code !== undefined || search.before !== undefined || search.requestId !== undefined) return null;
  const groups = groupErrors(errors).slice(0, SHOWN_GROUPS);
  if (groups.length === 0) return null;
  const show = ({ code, method, pathStart, status, apiKeyId }: ErrorGroup) =>
    change({ code, method, path: pathStart, status: String(status), key: apiKeyId ?? undefined });
  return (
    <ul className="groups" aria-label="Frequent errors">
      {groups.map((group) => (
        <li key={group.key} className="strip">
          <AlertIcon size={20} className={group.status >= 500 ? "bad" : "warning"} />
          <span className="grow">
            <b className="num">{formatCount(group.count)}×</b> {group.status} <b>{group.code}</b>{" "}
            <span className="soft">
              {group.method} <code>{group.shownPath}</code>
              {group.apiKeyId !== null && (
                <>
                  , key <span dir="auto">{nameOf(group.apiKeyId)}</span>
                </>
              )}
              , last {formatTime(group.lastAt)}
            </span>
          </span>
          <button type="button" className="btn s" onClick={() => show(group)}>
            Show
          </button>
        </li>
      ))}
    </ul>
  );
}

function NoRequests({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState
        title="No request matches"
        action={
          <Link to="/settings/logs" className="btn">
            Remove the filters
          </Link>
        }
      >
        Filters search your newest 50,000 requests.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No requests with an API key yet"
      action={
        <>
          <Link to="/settings/api" className="btn">
            API keys
          </Link>
          <Link to="/settings/logs" search={{ by: "session" }} className="btn">
            Requests of this website
          </Link>
        </>
      }
      curl={`curl ${location.origin}/v1/account \\\n  -H "Authorization: Bearer $STOA_API_KEY"`}
    >
      Send one with an API key, and it appears here.
    </EmptyState>
  );
}

const RequestTable = ({
  requests,
  openId,
  nameOf,
}: { requests: LoggedRequest[]; openId: string | undefined } & Named) => (
  <table className="log requests">
    <thead>
      <tr>
        <th>Status</th>
        <th>Request</th>
        <th>Sent by</th>
        <th className="r">Duration</th>
        <th className="r">Time</th>
      </tr>
    </thead>
    <tbody>
      {requests.map((request) => (
        <tr key={request.id} className={request.id === openId ? "on" : ""}>
          <td>
            <HttpStatus status={request.status}>{request.status}</HttpStatus>
          </td>
          <td className="request">
            <Link
              to="/settings/logs"
              search={(old: LogSearch) => ({ ...old, open: request.id })}
              className="row-link"
              aria-current={request.id === openId ? "true" : undefined}
              resetScroll={false}
              replace
              data-row
            >
              <span className="m">{request.method}</span> <code title={request.path}>{request.path}</code>
            </Link>
            {request.errorCode !== null && <span className="sm soft code">{request.errorCode}</span>}
          </td>
          <td className="soft cut" dir="auto">
            {senderOf(request, nameOf)}
          </td>
          <td className="r soft">{formatDuration(request.durationMs / 1_000)}</td>
          <td className="r soft">
            <time dateTime={request.at} title={formatExactTime(request.at)}>
              {formatTime(request.at)}
            </time>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const senderOf = ({ credential, apiKeyId }: LoggedRequest, nameOf: Named["nameOf"]): string => {
  if (apiKeyId !== null) return nameOf(apiKeyId);
  return { session: "this website", token: "an OAuth app" }[credential as "session"] ?? credential;
};

function HttpStatus({ status, children }: { status: number; children: ReactNode }) {
  if (status < 400) return <StatusTag tone="good">{children}</StatusTag>;
  return (
    <StatusTag tone={status >= 500 ? "bad" : "warning"} icon={<AlertIcon />}>
      {children}
    </StatusTag>
  );
}

/** What the page of errors says, too. */
const remedyOf = (code: string): string | undefined => (errorRemedies as Record<string, string>)[code];

/** The same request again, without its body and query, which are not stored. */
const codeOfRequest = ({ method, path, operation }: LoggedRequest) => ({
  curl: curlOf(method, path.replace(/^\/v1/, "")),
  sdk: operation === null ? "// No operation has this path." : `await stoa.${operation}(…);`,
});

function RequestDetail({ request, nameOf }: { request: LoggedRequest } & Named) {
  const navigate = route.useNavigate();
  const close = (old: LogSearch): LogSearch => ({ ...old, open: undefined });
  useKeys({ Escape: () => void navigate({ search: close, resetScroll: false }) });
  const remedy = request.errorCode === null ? undefined : remedyOf(request.errorCode);
  const facts: [string, ReactNode][] = [
    ["Request id", <Id key="id" id={request.requestId} />],
    ["Time", formatExactTime(request.at)],
    ["Duration", formatDuration(request.durationMs / 1_000)],
    ["Sent by", senderOf(request, nameOf)],
    ["Operation", request.operation ?? "none: no such path"],
    ["User agent", request.userAgent ?? "none"],
  ];
  return (
    <>
      <Link to="/settings/logs" search={close} className="link row back">
        <PaneBack>All requests</PaneBack>
      </Link>
      <div className="stack tight">
        <h2 className="h3">
          {request.method} <code>{request.path}</code>
        </h2>
        <span className="row wrap">
          <HttpStatus status={request.status}>{statusLine(request.status)}</HttpStatus>
          {request.errorCode !== null && <code>{request.errorCode}</code>}
        </span>
      </div>
      {remedy !== undefined && <p className="strip remedy">{remedy.replaceAll("`", "")}</p>}
      <dl className="request-facts">
        {facts.map(([term, fact]) => (
          <div key={term}>
            <dt className="soft">{term}</dt>
            <dd dir="auto">{fact}</dd>
          </div>
        ))}
      </dl>
      <ShowAsCode {...codeOfRequest(request)} />
      {request.errorCode === null ? (
        <a className="link" href="/docs">
          API reference
        </a>
      ) : (
        <a className="link" href={`/docs/errors#${request.errorCode}`}>
          About {request.errorCode}
        </a>
      )}
    </>
  );
}

function Foot({ requests, search }: { requests: LoggedRequest[]; search: LogSearch }) {
  const last = requests.at(-1);
  if (!last && search.before === undefined) return null;
  return (
    <div className="row between sm soft foot-row">
      <span>{formatCount(requests.length)} shown, stored for 7 days</span>
      <span className="row">
        {search.before !== undefined && (
          <Link to="/settings/logs" search={{ ...search, before: undefined }} className="btn s">
            Newest
          </Link>
        )}
        {last && requests.length === ROWS_PER_PAGE && (
          <Link
            to="/settings/logs"
            search={{ ...search, before: last.id, open: undefined }}
            className="btn s"
            rel="next"
          >
            Older
          </Link>
        )}
      </span>
    </div>
  );
}
