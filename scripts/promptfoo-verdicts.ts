/**
 * Compares nothing by itself: it installs promptfoo into a temporary folder, lets promptfoo grade 500 generated cases, and
 * writes cases and verdicts to evaluation/test/promptfoo-verdicts.gen.json, which a test replays. It also writes the SQL
 * parser of `is-sql` from promptfoo's own version. Needs the npm registry, 3 GB of disk and two minutes; not part of `npm test`.
 *
 *     node scripts/promptfoo-verdicts.ts [folder that has promptfoo installed]
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestCase } from "../evaluation/src/test-case.ts";
import { writeSqlParser } from "./build-sql-parser.ts";
import { type GeneratedCase, generateCases } from "./verdict-cases.ts";

const PROMPTFOO = "promptfoo@0.123.1";
const SQL_PARSER = "node-sql-parser@5.4.0";
const TARGET = resolve(import.meta.dirname, "../evaluation/test/promptfoo-verdicts.gen.json");
const CASES = 500;
const SEED = 4;

interface GradingResult {
  pass: boolean;
  score: number;
  componentResults?: GradingResult[];
}

interface Promptfoo {
  assertions: {
    runAssertions(options: {
      test: { vars: Record<string, unknown>; assert: TestCase["assert"]; threshold?: number | undefined };
      providerResponse: { output: unknown; cost: number };
      latencyMs: number;
    }): Promise<GradingResult>;
  };
}

function install(): string {
  const folder = mkdtempSync(join(tmpdir(), "stoa-promptfoo-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  const options = ["--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", ["install", ...options, PROMPTFOO, SQL_PARSER], { cwd: folder, stdio: "inherit" });
  return folder;
}

async function load(folder: string): Promise<Promptfoo> {
  for (const name of [
    "PROMPTFOO_DISABLE_TELEMETRY",
    "PROMPTFOO_DISABLE_UPDATE",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION",
  ])
    process.env[name] = "1";
  const entry = createRequire(join(folder, "package.json")).resolve("promptfoo");
  return (await import(pathToFileURL(entry.replace(/\.cjs$/, ".js")).href)) as Promptfoo;
}

const verdictOf = ({ pass, score }: GradingResult) => [Number(pass), score] as const;

async function gradeByPromptfoo({ assertions }: Promptfoo, { testCase, run }: GeneratedCase) {
  const { input: vars, assert, threshold } = testCase;
  const result = await assertions.runAssertions({
    test: { vars, assert, ...(threshold !== undefined && { threshold }) },
    providerResponse: { output: run.output, cost: run.costUsd },
    latencyMs: run.latencyMs,
  });
  // A set's members follow it.
  return { case: verdictOf(result), assertions: (result.componentResults ?? []).map(verdictOf) };
}

const folder = process.argv[2] ?? install();
await writeSqlParser(join(folder, "node_modules"));
const promptfoo = await load(folder);
const lines: string[] = [];
for (const generated of generateCases(CASES, SEED)) {
  const verdict = await gradeByPromptfoo(promptfoo, generated).catch((error: Error) => {
    throw new Error(`${JSON.stringify(generated)}: ${error.message}`);
  });
  lines.push(JSON.stringify({ ...generated, verdict }));
}
writeFileSync(TARGET, `[\n${lines.join(",\n")}\n]\n`);
console.log(`${lines.length} cases in ${TARGET}`);
process.exit();
