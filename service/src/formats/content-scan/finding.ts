import type { ScanFinding, ScanFindingKind, ScanSeverity } from "@stoa/contract";

/** One text of a product. Buyers read those of `isPublic` before they buy. */
export interface ScannedText {
  field: string;
  text: string;
  isPublic: boolean;
}

/** A finding without the name of its field. */
export type TextFinding = Omit<ScanFinding, "field">;

/** What a rule finds in a text: the place is `from` to `to`. */
export interface Match {
  kind: ScanFindingKind;
  severity: ScanSeverity;
  from: number;
  to: number;
  reason: string;
  /** Instead of the text at the place. */
  excerpt?: string;
}

export const severityRank: Record<ScanSeverity, number> = { high: 0, medium: 1, info: 2 };

/** Whether a moderator should look at it. */
export const isAlarming = ({ severity }: Pick<ScanFinding, "severity">): boolean => severity !== "info";
