import { z } from "zod";
import { Timestamp } from "../core/envelope.ts";

export const scanFindingKinds = [
  "secret",
  "hidden-characters",
  "bidirectional-characters",
  "confusable-characters",
  "html-comment",
  "encoded-payload",
  "remote-code",
  "role-forgery",
  "deception",
  "instruction-override",
  "exfiltration",
  "off-platform-link",
] as const;
export type ScanFindingKind = (typeof scanFindingKinds)[number];

export const scanSeverities = ["high", "medium", "info"] as const;
export type ScanSeverity = (typeof scanSeverities)[number];

/** Statements about a released version that the scan proves. */
export const scanBadges = [
  "no-hidden-text",
  "no-external-links",
  "no-download-commands",
  "no-secrecy",
] as const;
export type ScanBadge = (typeof scanBadges)[number];

export const ScanFinding = z
  .object({
    kind: z.enum(scanFindingKinds).describe("New values may be added"),
    severity: z
      .enum(scanSeverities)
      .describe("high: it looks like an attack; medium: look at it; info: harmless by itself"),
    field: z.string().describe("Such as description or content[0].content"),
    line: z.int().min(1).describe("Of the field's text; of a decoded text, the line of its code"),
    excerpt: z.string().describe("The place, shortened. Secrets are masked, hidden characters are named"),
    reason: z.string().describe("What it may do, and how to fix it"),
  })
  .meta({ id: "ScanFinding" });
export type ScanFinding = z.output<typeof ScanFinding>;

const shared = { scannedAt: Timestamp, scannerVersion: z.string().describe("Changes with the rules") };

/** For moderators. */
export const ProductScanReport = z
  .object({
    ...shared,
    version: z.string().describe("The scanned version: the newest one"),
    comparedWith: z
      .string()
      .nullable()
      .describe("The scanned version before it; null: there is none, and no finding is new"),
    findings: z
      .array(
        ScanFinding.extend({
          isNew: z.boolean().describe("Whether the version in comparedWith did not have it"),
        }),
      )
      .describe("At most 100, the gravest first"),
  })
  .meta({ id: "ProductScanReport" });

/** For everybody. */
export const ProductScan = z
  .object({
    ...shared,
    badges: z
      .array(z.enum(scanBadges))
      .describe(
        "no-hidden-text: no hidden or bidirectional characters. no-external-links: no link to another site. no-download-commands: no known command that runs a download or an encoded program. no-secrecy: no known order to deceive users, to override rules or to send data away. New values may be added",
      ),
  })
  .meta({
    id: "ProductScan",
    description: "What an automatic scan without a model did not find in the version. It can miss things.",
  });
export type ProductScan = z.output<typeof ProductScan>;
