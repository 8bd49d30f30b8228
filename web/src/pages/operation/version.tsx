import "./operation.css";
import type { VersionReport } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { WarningIcon } from "../../components/icons.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { versionQuery } from "../../queries/operation.ts";

type Migration = VersionReport["migrations"][number];
type Release = VersionReport["releases"][number];

const CODE = {
  curl: curlOf("GET", "/admin/version"),
  sdk: "const { version, migrations, releases } = await stoa.admin.version.get();",
};

export default function Version() {
  useTitle("Version");
  const { data: report } = useSuspenseQuery(versionQuery);
  const { version, previousVersion, releases } = report;
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Version {version}</h1>
        <ShowAsCode {...CODE} />
      </div>
      <p className="soft">
        {previousVersion === null
          ? "No other version ran here before."
          : `Before it, ${previousVersion} ran here.`}{" "}
        Before an upgrade, <Link to="/admin/backups">back up</Link> and read the notes of the new version. Its
        start applies the migrations.
      </p>
      <div className="operation-two">
        <Schema {...report} />
        <Versions versions={report.versions} />
      </div>
      {releases.map((release) => (
        <ReleaseNotes key={release.version} release={release} />
      ))}
      {releases.length === 0 && <p className="soft">CHANGELOG.md has no notes of this version.</p>}
    </main>
  );
}

const WORDS: Record<string, string> = {
  applied: "Applied",
  pending: "Pending",
  changed: "Changed",
  unknown: "Of a newer version",
};
const TONES: Record<string, Tone> = {
  applied: "good",
  pending: "warning",
  changed: "bad",
  unknown: "warning",
};

function Schema({ migrations, outdatedFunctions }: Pick<VersionReport, "migrations" | "outdatedFunctions">) {
  const others = migrations.filter(({ state }) => state !== "applied");
  const isCurrent = others.length === 0 && outdatedFunctions.length === 0;
  const applied = migrations.length - others.length;
  return (
    <section className="beam thin">
      <div className="row between wrap">
        <h2 className="h3">Database schema</h2>
        {isCurrent ? (
          <StatusTag tone="good">Current</StatusTag>
        ) : (
          <StatusTag tone="warning" icon={<WarningIcon />}>
            Differs
          </StatusTag>
        )}
      </div>
      <p className="soft sm">
        {formatCount(applied)} of {formatCount(migrations.length)} migrations are applied
        {outdatedFunctions.length > 0 && `; the next start replaces ${outdatedFunctions.join(", ")}`}.
      </p>
      {others.length > 0 && <Migrations migrations={others} />}
      <details>
        <summary>All migrations</summary>
        <Migrations migrations={migrations.toReversed()} />
      </details>
    </section>
  );
}

const Migrations = ({ migrations }: { migrations: Migration[] }) => (
  <table className="operation-table">
    <thead>
      <tr>
        <th>Migration</th>
        <th>State</th>
        <th>Applied</th>
      </tr>
    </thead>
    <tbody>
      {migrations.map(({ name, state, appliedAt }) => (
        <tr key={name}>
          <td className="mono">{name}</td>
          <td>
            <StatusTag tone={TONES[state] ?? "neutral"}>{WORDS[state] ?? state}</StatusTag>
          </td>
          <td className="soft sm fit">{appliedAt ? <Time iso={appliedAt} /> : "never"}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

const Versions = ({ versions }: Pick<VersionReport, "versions">) => (
  <section className="beam thin">
    <h2 className="h3">Versions that ran here</h2>
    <table className="operation-table">
      <thead>
        <tr>
          <th>Version</th>
          <th>First start</th>
          <th>Last start</th>
        </tr>
      </thead>
      <tbody>
        {versions.map(({ version, firstStartedAt, lastStartedAt }) => (
          <tr key={version}>
            <td className="mono">{version}</td>
            <td className="soft sm fit">
              <span className="phone">first </span>
              <Time iso={firstStartedAt} />
            </td>
            <td className="soft sm fit">
              <span className="phone">last </span>
              <Time iso={lastStartedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

const ReleaseNotes = ({ release: { version, releasedOn, notes } }: { release: Release }) => (
  <section className="beam thin operation-notes">
    <div className="row wrap">
      <h2 className="h3">{version === null ? "Not released yet" : `Notes of ${version}`}</h2>
      {releasedOn && <span className="soft sm">{releasedOn}</span>}
    </div>
    <Markdown text={notes} />
  </section>
);
