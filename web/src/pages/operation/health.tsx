import "./operation.css";
import type { Health as HealthReport } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { AlertIcon, DoneIcon, PulseIcon, WarningIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatBytes, formatCount, formatTime } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { healthQuery } from "../../queries/operation.ts";
import { DatabaseSection } from "./database-section.tsx";
import { LedgerSection } from "./ledger-section.tsx";

type Service = HealthReport["services"][number];
type Check = HealthReport["checks"][number];
type State = Check["state"];

const CODE = { curl: curlOf("GET", "/admin/health"), sdk: "const health = await stoa.admin.health.get();" };

const NAMES: Record<string, string> = {
  database: "Database",
  jobs: "Jobs",
  emails: "Emails",
  files: "Files",
  disk: "Disk",
  webhooks: "Webhooks",
  payments: "Payments",
  ledger: "Ledger",
};

const WORDS: Record<string, string> = { ok: "Works", warning: "Needs attention", failed: "Fails" };

const StateTag = ({ state }: { state: State }) => {
  if (state === "ok") return <StatusTag tone="good">Works</StatusTag>;
  if (state === "failed") return <StatusTag tone="bad">Fails</StatusTag>;
  return (
    <StatusTag tone="warning" icon={<WarningIcon />}>
      Needs attention
    </StatusTag>
  );
};

export default function Health() {
  useTitle("Health");
  const { data: health } = useSuspenseQuery(healthQuery);
  const { refetch, isFetching, error } = useQuery(healthQuery);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div className="row wrap">
          <h1 className="page-title">Health</h1>
          <StateTag state={health.state} />
        </div>
        <span className="row wrap sm soft">
          <span role="status">
            {isFetching ? (
              "Checking"
            ) : (
              <>
                checked <Time iso={health.checkedAt} />
              </>
            )}
          </span>
          <button type="button" className="btn s" disabled={isFetching} onClick={() => void refetch()}>
            <PulseIcon /> Check again
          </button>
          <ShowAsCode {...CODE} />
        </span>
      </div>
      <p className="soft sm">
        Stoa {health.version}, {health.environment} environment
      </p>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      <ServiceTable health={health} />
      <div className="operation-two">
        <LedgerSection />
        <Checks checks={health.checks} />
      </div>
      <DatabaseSection />
    </main>
  );
}

const ServiceTable = ({ health: { services, checks } }: { health: HealthReport }) => (
  <table className="operation-table beam">
    <thead>
      <tr>
        <th>Service</th>
        <th>State</th>
        <th className="r">Now</th>
        <th>24 hours</th>
        <th>Details</th>
      </tr>
    </thead>
    <tbody>
      {services.map((service) => (
        <tr key={service.service}>
          <td className="m">{NAMES[service.service] ?? service.service}</td>
          <td>
            <StateTag state={service.state} />
          </td>
          <td className="r wide">
            <Figure service={service} />
          </td>
          <td className="wide">
            <Hours service={service} />
          </td>
          <td className="soft sm wide">{detailOf(service, checks)}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** The worst state of each hour. */
function Hours({ service: { hours } }: { service: Service }) {
  const count = (wanted: State | null) => hours.filter(({ state }) => state === wanted).length;
  const parts = [
    `${formatCount(count("failed"))} with failures`,
    `${formatCount(count("warning"))} that need attention`,
    ...(count(null) > 0 ? [`${formatCount(count(null))} without a check`] : []),
  ];
  return (
    <span className="operation-hours" role="img" aria-label={`24 hours: ${parts.join(", ")}`}>
      {hours.map(({ startsAt, state }) => (
        <i
          key={startsAt}
          className={state ?? "none"}
          title={`${formatTime(startsAt)}: ${state === null ? "not checked" : (WORDS[state] ?? state)}`}
        />
      ))}
    </span>
  );
}

function Figure({ service: { value, unit } }: { service: Service }) {
  if (value === null) return <span className="soft">not measured</span>;
  if (unit === "free bytes")
    return (
      <>
        <span className="m num">{formatBytes(value)}</span> <span className="soft">free</span>
      </>
    );
  return (
    <>
      <span className="m num">{formatCount(value)}</span> <span className="soft">{unit}</span>
    </>
  );
}

/** The note of its worst check; that of its first one where all is well. */
function detailOf({ checks: names, state }: Service, checks: Check[]): string {
  const own = names.flatMap((name) => checks.find(({ check }) => check === name) ?? []);
  return (own.find((check) => check.state === state) ?? own[0])?.note ?? "";
}

const ICONS: Record<string, ReactNode> = {
  ok: <DoneIcon className="good" />,
  warning: <WarningIcon className="warning" />,
  failed: <AlertIcon className="bad" />,
};

function Checks({ checks }: { checks: Check[] }) {
  const [showsAll, setShowsAll] = useState(false);
  const wrong = checks.filter(({ state }) => state !== "ok");
  const passed = checks.length - wrong.length;
  return (
    <section className="beam thin">
      <div className="row between wrap">
        <h2 className="h3">Checks</h2>
        <span className="sm soft">
          {formatCount(wrong.length)} to look at, {formatCount(passed)} passed
        </span>
      </div>
      <ul className="operation-checks">
        {(showsAll ? checks : wrong).map(({ check, state, note }) => (
          <li key={check}>
            {ICONS[state]}
            <span>
              <b className="m">{check}</b> <span className="hidden">{WORDS[state] ?? state}:</span>{" "}
              <span className="soft">{note}</span>
            </span>
          </li>
        ))}
      </ul>
      <button type="button" className="btn quiet s" onClick={() => setShowsAll(!showsAll)}>
        {showsAll ? "Hide those that passed" : `Show ${passed} that passed`}
      </button>
    </section>
  );
}
