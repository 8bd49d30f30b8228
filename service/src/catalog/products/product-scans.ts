import type { ProductChecks, ProductScan, ScanBadge, ScanFinding, ScanFindingKind } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { type FieldProblem, fieldError } from "../../core/errors.ts";
import {
  isAlarming,
  type ScannedText,
  severityRank,
  type TextFinding,
} from "../../formats/content-scan/finding.ts";
import { SCANNER_VERSION, scanText } from "../../formats/content-scan/scan.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { LockedProduct } from "./ownership.ts";
import { insertReport } from "./report-queries.ts";
import { findLastScans, type ScanRow, writeScans } from "./scan-queries.ts";
import { listScannedTexts, type ScannedProduct } from "./scanned-texts.ts";
import { parseVersion } from "./semantic-version.ts";

const MAX_FINDINGS = 100;
const MAX_WARNINGS = 10;
const NAMED_FINDINGS = 3;
/** Of all texts of a product: the scan must not block the process. */
const MAX_CHARACTERS = 500_000;

const badgeRules: Record<ScanBadge, (finding: ScanFinding) => boolean> = {
  "no-hidden-text": ({ kind }) => kind === "hidden-characters" || kind === "bidirectional-characters",
  "no-external-links": ({ kind }) => kind === "off-platform-link",
  "no-download-commands": isAlarmingKind("remote-code", "encoded-payload"),
  "no-secrecy": isAlarmingKind(
    "deception",
    "instruction-override",
    "exfiltration",
    "html-comment",
    "encoded-payload",
  ),
};

function isAlarmingKind(...kinds: ScanFindingKind[]): (finding: ScanFinding) => boolean {
  return (finding) => isAlarming(finding) && kinds.includes(finding.kind);
}

interface ScanResult {
  findings: ScanFinding[];
  badges: ScanBadge[];
}

/** The scan of a change, and what was found before it. */
export interface ScanChange {
  result: ScanResult;
  before: readonly ScanFinding[];
}

/** A longer text would displace many short ones. */
const MAX_CACHED_TEXT_CHARACTERS = 10_000;
/** Two bytes a character: about 2 MB in all. */
const MAX_CACHED_CHARACTERS = 1_000_000;
/** An estimate of what a finding takes. */
const CHARACTERS_PER_FINDING = 200;
/** A text is scanned when it is saved, and mostly again right after, when it is published. Many products share tags. */
const scanCache = new Map<string, readonly TextFinding[]>();
let cachedCharacters = 0;

function scanField({ field, text, isPublic }: ScannedText): ScanFinding[] {
  if (text === "") return [];
  const isCached = text.length <= MAX_CACHED_TEXT_CHARACTERS;
  const found = isCached ? scanCached(text, isPublic) : scanText(text, { isPublic });
  return found.map((finding) => ({ ...finding, field }));
}

function scanCached(text: string, isPublic: boolean): readonly TextFinding[] {
  const key = `${isPublic ? "+" : "-"}${text}`;
  const cached = scanCache.get(key);
  if (cached) return cached;
  const findings = scanText(text, { isPublic });
  scanCache.set(key, findings);
  cachedCharacters += weightOf(key, findings);
  for (const [oldest, oldFindings] of scanCache) {
    if (cachedCharacters <= MAX_CACHED_CHARACTERS) break;
    scanCache.delete(oldest);
    cachedCharacters -= weightOf(oldest, oldFindings);
  }
  return findings;
}

/** In characters. The entry itself takes as much as a finding. */
const weightOf = (key: string, findings: readonly TextFinding[]): number =>
  key.length + CHARACTERS_PER_FINDING * (1 + findings.length);

/** The result depends on the texts alone. Some milliseconds for usual prompts, and at most 0.2 s for 200,000 characters. */
export function scanProduct(product: ScannedProduct): ScanResult {
  let characters = 0;
  const texts = listScannedTexts(product);
  const scanned = texts.filter(({ text }) => {
    characters += text.length;
    return characters <= MAX_CHARACTERS;
  });
  const findings = scanned.flatMap(scanField);
  const isWhole = scanned.length === texts.length;
  return {
    findings: findings
      .toSorted((a, b) => severityRank[a.severity] - severityRank[b.severity])
      .slice(0, MAX_FINDINGS),
    badges: isWhole
      ? (Object.keys(badgeRules) as ScanBadge[]).filter((badge) => !findings.some(badgeRules[badge]))
      : [],
  };
}

/** A secret is refused, because it harms its seller as soon as one buyer reads it. `before`: findings that were published already. */
export function mustHaveNoSecret({ findings }: ScanResult, before: readonly ScanFinding[] = []): void {
  const isNew = createFindingFilter(before);
  const secrets = findings.filter((finding) => finding.kind === "secret" && isNew(finding));
  if (secrets.length > 0) throw fieldError("VALIDATION_ERROR", secrets.map(toProblem));
}

/** Whether a finding is none of those before. */
export function createFindingFilter(before: readonly ScanFinding[]): (finding: ScanFinding) => boolean {
  const known = new Set(before.map(keyOf));
  return (finding) => !known.has(keyOf(finding));
}

/** Without the line, so that a finding is the same one after a change above it. */
const keyOf = ({ kind, field, excerpt, reason }: ScanFinding): string =>
  JSON.stringify([kind, field, excerpt, reason]);

const toProblem = ({ field, line, excerpt, reason }: ScanFinding): FieldProblem => ({
  field,
  reason: `line ${line}, “${excerpt}”: ${reason}`,
});

/** For the seller, at each save. The check of templates warns of hidden characters. */
export const scanWarnings = (product: ScannedProduct): FieldProblem[] =>
  scanProduct(product)
    .findings.filter((finding) => isAlarming(finding) && finding.kind !== "hidden-characters")
    .slice(0, MAX_WARNINGS)
    .map(toProblem);

/** Stores the results for reads. In the transaction that submits or publishes the versions, or changes them afterwards. */
export const storeScans = (
  ctx: Context,
  tx: Tx,
  scans: { product: Pick<LockedProduct, "id" | "version">; result: ScanResult }[],
) =>
  writeScans(
    tx,
    scans.map(({ product: { id, version }, result }) => ({
      ...result,
      productId: id,
      numbers: parseVersion(version),
      scannedAt: ctx.now(),
      scannerVersion: SCANNER_VERSION,
    })),
  );

/** Whether `reportFindings` may report it. */
export const isReportable = ({ findings }: ScanResult): boolean =>
  findings.some(({ severity }) => severity === "high");

/**
 * Reports a product that is on sale without a review of this scan to the moderators, in the name of the marketplace, if it has high findings
 * that `before` did not have. A secret is a mistake of the seller, and no attack.
 */
export async function reportFindings(
  ctx: Context,
  tx: Tx,
  productId: string,
  { result: { findings }, before }: ScanChange,
  version?: string,
): Promise<void> {
  const isNew = createFindingFilter(before);
  const found = findings.filter((finding) => finding.severity === "high" && isNew(finding));
  if (found.length === 0) return;
  const named = found
    .slice(0, NAMED_FINDINGS)
    .map(({ kind, field, line }) => `${kind} in ${field}, line ${line}`);
  const more = found.length - named.length;
  await insertReport(tx, {
    productId,
    reporterId: null,
    reasonCode: found.every(({ kind }) => kind === "secret") ? "other" : "malicious",
    comment: `The scan${version ? ` of version ${version}` : ""} found ${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`,
    createdAt: ctx.now(),
  });
}

/** The findings of the newest version, if it was scanned. */
export async function lastFindings(db: Queries, productId: string): Promise<ScanFinding[]> {
  const { scan, before } = await findLastScans(db, productId);
  return (scan ?? before)?.findings ?? [];
}

export async function readScanReport(db: Queries, productId: string): Promise<ProductChecks["scan"]> {
  const { scan, before } = await findLastScans(db, productId);
  if (!scan) return null;
  const isNew = createFindingFilter(before?.findings ?? []);
  return {
    version: scan.numbers.join("."),
    comparedWith: before?.numbers.join(".") ?? null,
    scannedAt: scan.scannedAt.toISOString(),
    scannerVersion: scan.scannerVersion,
    findings: scan.findings.map((finding) => ({
      ...finding,
      isNew: before !== undefined && isNew(finding),
    })),
  };
}

/** The scan changes without the product when rules do. */
export const scanEtag = (scan: ProductScan | null): string => (scan ? `~s${scan.scannerVersion}` : "");

export const toProductScan = (
  scan: Pick<ScanRow, "scannedAt" | "scannerVersion" | "badges"> | null,
): ProductScan | null => scan && { ...scan, scannedAt: scan.scannedAt.toISOString() };
