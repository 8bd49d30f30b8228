import type { DraftScan } from "@stoa/sdk";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { AlertIcon, CheckIcon, CloseIcon, InfoIcon, WarningIcon } from "../../components/icons.tsx";
import { formatCount } from "../../lib/format.ts";
import { FINDING_KINDS, SCAN_BADGES } from "../../lib/scan-labels.ts";
import { FIELDS, fieldOfPath } from "./draft-fields.ts";
import { useEditor } from "./editor-context.tsx";

type Finding = DraftScan["findings"][number];

interface Group {
  title: string;
  advice: string;
  icon: React.ReactNode;
  has: (finding: Finding) => boolean;
}

const GROUPS: Group[] = [
  {
    title: "Prevents the publication",
    advice: "Every buyer could read it.",
    icon: <AlertIcon className="bad" />,
    has: ({ isBlocking }) => isBlocking,
  },
  {
    title: "Looks like an attack",
    advice: "You can publish. Moderators get a report of it.",
    icon: <AlertIcon className="bad" />,
    has: ({ isBlocking, severity }) => !isBlocking && severity === "high",
  },
  {
    title: "Look at it",
    advice: "You can publish. It may be meant so.",
    icon: <WarningIcon className="warning" />,
    has: ({ isBlocking, severity }) => !isBlocking && severity === "medium",
  },
  {
    title: "Harmless by itself",
    advice: "Only information.",
    icon: <InfoIcon className="soft" />,
    has: ({ severity }) => severity === "info",
  },
];

interface ScanDialogProps {
  scan: DraftScan;
  onClose: () => void;
}

/** What was found, where, and what follows from it. */
export default function ScanDialog({ scan, onClose }: ScanDialogProps) {
  const { findings, badges } = scan;
  return (
    <Dialog title="What the scan found" onClose={onClose}>
      <p className="soft">
        An automatic scan of every text of the product, without a model. It can miss things, and it also flags
        words in a prompt about attacks.
      </p>
      {findings.length === 0 && (
        <p className="row">
          <CheckIcon className="good" /> Nothing
        </p>
      )}
      {GROUPS.map((group) => (
        <FindingGroup
          key={group.title}
          group={group}
          findings={findings.filter(group.has)}
          onClose={onClose}
        />
      ))}
      <Badges badges={badges} />
      <DialogButtons>
        <button type="button" className="btn primary" onClick={onClose}>
          Done
        </button>
      </DialogButtons>
    </Dialog>
  );
}

interface FindingGroupProps {
  group: Group;
  findings: Finding[];
  onClose: () => void;
}

function FindingGroup({ group: { title, advice, icon }, findings, onClose }: FindingGroupProps) {
  if (findings.length === 0) return null;
  return (
    <section className="beam thin stack">
      <h3>
        {title} <span className="num soft">{formatCount(findings.length)}</span>
      </h3>
      <p className="sm soft">{advice}</p>
      <ul className="draft-scan">
        {findings.map((finding) => (
          <li key={finding.kind + finding.field + finding.line + finding.reason}>
            {icon}
            <FindingText finding={finding} onClose={onClose} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function FindingText({ finding, onClose }: { finding: Finding; onClose: () => void }) {
  const { goTo } = useEditor();
  const { kind, field, line, excerpt, reason } = finding;
  const named = fieldOfPath(field);
  const show = () => {
    if (!named) return;
    onClose();
    goTo(named, FIELDS[named].tab);
  };
  return (
    <div className="stack">
      <span className="row wrap">
        <b>{FINDING_KINDS[kind] ?? kind}</b>
        <span className="sm soft">
          {named ? FIELDS[named].label : <code>{field}</code>}, line {formatCount(line)}
        </span>
        {named && (
          <button type="button" className="btn quiet s" onClick={show}>
            Go there
          </button>
        )}
      </span>
      <code className="cut-words">{excerpt}</code>
      <span className="sm">It {reason}.</span>
    </div>
  );
}

/** The statements that buyers read beside the price. */
const Badges = ({ badges }: { badges: readonly string[] }) => (
  <section className="beam thin stack">
    <h3>What buyers see</h3>
    <ul className="draft-scan">
      {Object.entries(SCAN_BADGES).map(([badge, label]) => {
        const isShown = badges.includes(badge);
        return (
          <li key={badge} className={isShown ? "sm" : "sm soft"}>
            {isShown ? <CheckIcon className="good" /> : <CloseIcon />}
            <span>
              {label}
              {!isShown && ": not shown, because of what was found"}
            </span>
          </li>
        );
      })}
    </ul>
  </section>
);
