import type { ProductChecks } from "@stoa/sdk";
import { AlertIcon, CheckIcon, InfoIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { FINDING_KINDS } from "../../lib/scan-labels.ts";

type Scan = NonNullable<ProductChecks["scan"]>;
type Finding = Scan["findings"][number];

const GROUPS = [
  { severity: "high", title: "Looks like an attack" },
  { severity: "medium", title: "Look at it" },
  { severity: "info", title: "Harmless by itself" },
] as const;

/** What a moderator must look at before a decision is suggested. */
export const hasAlarmingFindings = ({ scan }: ProductChecks): boolean =>
  scan?.findings.some(({ severity }) => severity !== "info") ?? false;

export function ScanChecks({ scan }: { scan: ProductChecks["scan"] }) {
  if (!scan) return null;
  const { findings, comparedWith } = scan;
  const fresh = findings.filter(({ isNew }) => isNew).length;
  return (
    <section className="beam thin stack" aria-label="Scan">
      <div className="row wrap between">
        <h3>Scan</h3>
        <span className="sm soft">
          version {scan.version}, <Time iso={scan.scannedAt} />
          {comparedWith && `, ${formatCount(fresh)} new since ${comparedWith}`}
        </span>
      </div>
      {findings.length === 0 && (
        <p className="row">
          <CheckIcon className="good" /> Nothing was found
        </p>
      )}
      {GROUPS.map(({ severity, title }) => (
        <Group key={severity} title={title} findings={findings.filter((one) => one.severity === severity)} />
      ))}
    </section>
  );
}

function Group({ title, findings }: { title: string; findings: Finding[] }) {
  const [first] = findings;
  if (!first) return null;
  const isInfo = first.severity === "info";
  return (
    <div className="stack">
      <h4 className={isInfo ? "soft" : first.severity === "high" ? "bad" : ""}>
        {title} <span className="num soft">{formatCount(findings.length)}</span>
      </h4>
      <ul className="scan-findings">
        {findings.map((finding) => (
          <li key={finding.kind + finding.field + finding.line + finding.reason} className="review-check">
            <span className={isInfo ? "faint" : "bad"}>{isInfo ? <InfoIcon /> : <AlertIcon />}</span>
            <FindingText finding={finding} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const FindingText = ({ finding: { kind, field, line, excerpt, reason, isNew } }: { finding: Finding }) => (
  <div className="stack">
    <span className="row wrap">
      <b>{FINDING_KINDS[kind] ?? kind}</b>
      {isNew && <span className="tag warning">New</span>}
      <span className="sm soft">
        <code>{field}</code>, line {formatCount(line)}
      </span>
    </span>
    <code className="scan-excerpt">{excerpt}</code>
    <span className="sm soft">It {reason}.</span>
  </div>
);
