import { readHarmlessPrompts, readPatterns } from "@stoa/service/formats/content-scan/corpus/read-corpus.ts";
import { scanText } from "@stoa/service/formats/content-scan/scan.ts";
import type { Options } from "../options.ts";
import { quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";

const AIM_MS = 200;
const WARM_UP = 50;
const ROUNDS = 3;
/** The largest content of a product. */
const MAX_CHARACTERS = 200_000;

/** The scan of a publication: each text of the corpus by itself, and the largest content that a product may have. */
export async function measureScan(_options: Options): Promise<Report> {
  const patterns = readPatterns().map(({ text }) => text);
  const prompts = readHarmlessPrompts();
  const first = timeOf(prompts[0] ?? "");
  for (const text of prompts.slice(0, WARM_UP)) timeOf(text);
  const kinds: [what: string, texts: string[]][] = [
    [`${patterns.length} malicious patterns`, patterns],
    [`${prompts.length.toLocaleString("en-US")} prompts (CC0)`, prompts],
    [`${MAX_CHARACTERS.toLocaleString("en-US")} characters of prompts`, listLargest(prompts)],
    [`${MAX_CHARACTERS.toLocaleString("en-US")} characters of patterns`, listLargest(patterns)],
  ];
  return {
    columns: ["scanned texts", "p50 ms", "p95 ms", "p99 ms", "most ms", "aim", "met"],
    rows: kinds.map(([what, texts]) => rowOf(what, texts)),
    notes: [
      `Each text ${ROUNDS} times, one after the other, in one process; the shortest time of each text counts. The first scan of the process took ${ms(first)} ms.`,
    ],
  };
}

function rowOf(what: string, texts: string[]): string[] {
  const rounds = Array.from({ length: ROUNDS }, () => texts.map(timeOf));
  // The shortest of each text: other programs use the machine.
  const times = texts.map((_, at) => Math.min(...rounds.map((round) => round[at] ?? Number.NaN)));
  const { p50, p95, p99, max } = quantilesOf(times);
  const [, ...aim] = comparedWithAim("", `≤ ${AIM_MS} ms`, max <= AIM_MS);
  return [what, ...[p50, p95, p99, max].map(ms), ...aim];
}

function timeOf(text: string): number {
  const begun = performance.now();
  scanText(text, { isPublic: false });
  return performance.now() - begun;
}

/** Ten texts of the largest size, each of other parts. */
function listLargest(parts: readonly string[]): string[] {
  const all = parts.join("\n\n").repeat(Math.ceil((10 * MAX_CHARACTERS) / parts.join("\n\n").length) + 1);
  return Array.from({ length: 10 }, (_, at) => all.slice(at * MAX_CHARACTERS, (at + 1) * MAX_CHARACTERS));
}
