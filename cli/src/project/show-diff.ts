import type { ProductDetail } from "@stoa/sdk";
import { type Output, withoutControls } from "../output.ts";
import { type Comparable, type Comparison, namesOf } from "./compare.ts";
import { type Fields, toFields } from "./product-fields.ts";
import { type FileName, formatProductFile, inFileOrder } from "./product-file.ts";

/** Long texts that have little in common would take minutes. */
const TIMEOUT_MS = 2_000;

interface Sides {
  name: FileName;
  local: Comparable;
  /** undefined: the product does not exist yet. */
  product: ProductDetail | undefined;
  comparison: Comparison;
}

/** Lines that lead from the service to the folder: a unified diff of the product's file, then the files and images. */
export async function toDiff(sides: Sides): Promise<string[]> {
  return [...(await diffOfFile(sides)), ...listAttachmentChanges(sides)];
}

async function diffOfFile({ name, local, product, comparison }: Sides): Promise<string[]> {
  if (!product) return [`+ ${name}`];
  const changed = new Set(namesOf(comparison.fields, ["local", "remote", "both"]));
  const hasNewVersion = isNewVersion(local, product);
  if (hasNewVersion) changed.add("version");
  const isShown = (field: string) => field !== "changelog" && (field !== "version" || hasNewVersion);
  const right = Object.entries(local.file.fields).filter(([field]) => isShown(field));
  const remote: Fields = { ...toFields(product), version: product.version };
  // Values that differ only in spelling are no change.
  const left = right.map(([field, value]) => [field, changed.has(field) ? remote[field] : value] as const);
  const format = (entries: readonly (readonly [string, unknown])[]) =>
    formatProductFile(name, inFileOrder(Object.fromEntries(entries)));
  return unifiedDiff(name, await format(left), await format(right));
}

const isNewVersion = ({ file }: Comparable, product: ProductDetail) =>
  file.fields["version"] !== undefined && isNewer(String(file.fields["version"]), product.version);

/** By the numbers of semantic versions. */
export function isNewer(version: string, than: string): boolean {
  const [left, right] = [version.split(".").map(Number), than.split(".").map(Number)];
  for (const [at, number] of left.entries()) {
    const other = right[at] ?? 0;
    if (number !== other) return number > other;
  }
  return false;
}

async function unifiedDiff(name: string, before: string, after: string): Promise<string[]> {
  if (before === after) return [];
  const { structuredPatch } = await import("diff");
  const patch = structuredPatch(name, name, before, after, "", "", { context: 3, timeout: TIMEOUT_MS });
  const head = [`--- service/${name}`, `+++ ${name}`];
  if (!patch) return [...head, `@@ ${before.split("\n").length} lines, now ${after.split("\n").length} @@`];
  const hunks = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...lines,
  ]);
  return [...head, ...hunks];
}

const verbs = { local: "", remote: " (changed on the service)", both: " (changed on both sides)", same: "" };

function listAttachmentChanges({ local, product, comparison }: Sides): string[] {
  const lines: string[] = [];
  const remoteFiles = new Set((product?.files ?? []).map(({ name }) => name));
  for (const [name, change] of comparison.files)
    if (change !== "same")
      lines.push(`${signOf(local.files.has(name), remoteFiles.has(name))} files/${name}${verbs[change]}`);
  for (const [name, change] of comparison.images) {
    if (change === "same") continue;
    // Of what is in the folder, a local change is an addition as far as the service knows.
    const isThere = change !== "local" || !local.images.has(name);
    lines.push(`${signOf(local.images.has(name), isThere)} images/${name}${verbs[change]}`);
  }
  return lines;
}

const signOf = (isHere: boolean, isThere: boolean): string => (isHere ? (isThere ? "~" : "+") : "-");

/** In the colours of git. */
export function paintDiff(lines: string[], output: Output, stream: NodeJS.WriteStream): string {
  return lines
    .map((raw) => {
      const line = withoutControls(raw);
      if (/^(---|\+\+\+) /.test(line)) return output.style("bold", line, stream);
      if (line.startsWith("@@")) return output.style("cyan", line, stream);
      if (line.startsWith("+")) return output.style("green", line, stream);
      return /^[-]/.test(line) ? output.style("red", line, stream) : line;
    })
    .join("\n");
}
