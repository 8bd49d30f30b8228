import { z } from "zod";

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

const scanFinding = {
  kind: z.enum(scanFindingKinds).describe("New values may be added"),
  severity: z
    .enum(scanSeverities)
    .describe("high: it looks like an attack; medium: check it; info: harmless by itself"),
  field: z.string().describe("Such as description or content[0].content"),
  line: z.int().min(1).describe("Of the field's text; in a decoded text, the line that holds the code"),
  excerpt: z.string().describe("The place, shortened. Secrets are masked, hidden characters are named"),
  reason: z.string().describe("What it may do, and how to fix it"),
};

export const ScanFinding = z.object(scanFinding).meta({ id: "ScanFinding" });
export type ScanFinding = z.output<typeof ScanFinding>;
