import "./audit-entries.css";
import type { AuditEntry } from "@stoa/sdk";
import { Id } from "../id.tsx";
import { Time } from "../time.tsx";
import { PersonLink, TargetLink } from "./links.tsx";

/** Entries of the audit log, newest first. */
export const AuditEntries = ({ entries }: { entries: readonly AuditEntry[] }) => (
  <ul className="audit-entries">
    {entries.map((entry) => (
      <Entry key={entry.id} entry={entry} />
    ))}
  </ul>
);

function Entry({ entry }: { entry: AuditEntry }) {
  const { actor, target, details, ip } = entry;
  return (
    <li>
      <div className="stack">
        <div className="row wrap">
          <code className="audit-action">{entry.action}</code>
          {target && <TargetLink id={target.id} />}
        </div>
        <Details details={details} />
        <p className="sm soft row wrap">
          <span>by</span>
          {actor ? (
            <PersonLink person={{ id: actor.id, name: actor.name ?? "Closed account" }} />
          ) : (
            <span>the service</span>
          )}
          {ip && <span>from {ip}</span>}
          {entry.requestId && <Id id={entry.requestId} />}
        </p>
      </div>
      <Time iso={entry.createdAt} className="sm soft nowrap" />
    </li>
  );
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function Details({ details }: { details: AuditEntry["details"] }) {
  const facts = Object.entries(details);
  if (facts.length === 0) return null;
  return (
    <dl className="audit-details sm">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt className="soft">{name}</dt>
          <dd dir="auto">{textOf(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
