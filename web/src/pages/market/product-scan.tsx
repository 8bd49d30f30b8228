import type { ProductDetail } from "@stoa/sdk";
import { CheckIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";
import { SCAN_BADGES } from "../../lib/scan-labels.ts";

type Scan = NonNullable<ProductDetail["scan"]>;

export function ScanBadges({ scan, version }: { scan: Scan; version: string }) {
  const labels = scan.badges.map((badge) => SCAN_BADGES[badge]).filter((label) => label !== undefined);
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
