import type { ProductDetail } from "@stoa/sdk";
import { CheckIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";

type Scan = NonNullable<ProductDetail["scan"]>;

/** Each promises no more than what was checked. A badge of a newer service has no label here, and is left out. */
const LABELS: Record<string, string> = {
  "no-hidden-text": "No hidden characters",
  "no-external-links": "No links to other sites",
  "no-download-commands": "No known commands that run downloads",
  "no-secrecy": "No known orders to deceive you or send your data away",
};

export function ScanBadges({ scan, version }: { scan: Scan; version: string }) {
  const labels = scan.badges.map((badge) => LABELS[badge]).filter((label) => label !== undefined);
  if (labels.length === 0) return null;
  return (
    <div className="scan">
      <p className="sm soft">
        Scanned version {version}, <Time iso={scan.scannedAt} isDay />
      </p>
      <ul className="scan-badges">
        {labels.map((label) => (
          <li key={label} className="sm">
            <CheckIcon size={14} className="good" />
            {label}
          </li>
        ))}
      </ul>
      <p className="sm faint">An automatic scan can miss things.</p>
    </div>
  );
}
