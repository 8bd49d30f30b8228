import type { DraftScan } from "@stoa/sdk";
import { lazy, useState } from "react";
import { AlertIcon, DoneIcon, WaitingIcon, WarningIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { formatCount } from "../../lib/format.ts";
import { useDraftScan } from "./use-draft-scan.ts";

const ScanDialog = lazy(() => import("./scan-dialog.tsx"));

/** The scan of the draft, in the list before the publication. */
export function ScanItem() {
  const { data: scan, error, refetch } = useDraftScan();
  const [isOpen, open] = useState(false);
  if (!scan)
    return (
      <li className={error ? "is-open" : ""}>
        <WaitingIcon />
        {error ? (
          <button type="button" onClick={() => void refetch()}>
            Scan again
          </button>
        ) : (
          <span>Scan</span>
        )}
      </li>
    );
  const { tone, label } = describe(scan);
  return (
    <li className={scan.findings.length === 0 ? "" : "is-open"}>
      {ICONS[tone]}
      <button type="button" onClick={() => open(true)}>
        {label}
        {tone === "warning" && <span className="faint"> optional</span>}
      </button>
      {isOpen && (
        <Part>
          <ScanDialog scan={scan} onClose={() => open(false)} />
        </Part>
      )}
    </li>
  );
}

const ICONS = {
  bad: <AlertIcon className="bad" />,
  warning: <WarningIcon className="warning" />,
  good: <DoneIcon className="good" />,
};

function describe({ findings }: DraftScan): { tone: keyof typeof ICONS; label: string } {
  const blocking = findings.filter(({ isBlocking }) => isBlocking).length;
  if (blocking > 0)
    return { tone: "bad", label: `Remove ${formatCount(blocking)} ${blocking === 1 ? "secret" : "secrets"}` };
  const alarming = findings.filter(({ severity }) => severity !== "info").length;
  if (alarming > 0)
    return {
      tone: "warning",
      label: `Look at ${formatCount(alarming)} ${alarming === 1 ? "finding" : "findings"} of the scan`,
    };
  const notes = findings.length;
  return {
    tone: "good",
    label: notes === 0 ? "Scan" : `Scan, ${formatCount(notes)} ${notes === 1 ? "note" : "notes"}`,
  };
}
