/** Compares the service of a commit with that of the work tree, in turns within one run. Prints a table a workload. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { machine } from "../machine.ts";
import { atEnd, endAll, ROOT } from "../processes.ts";
import { median } from "../quantile.ts";
import { toMarkdown } from "../report.ts";
import { compareRounds, judge, MIN_ROUNDS } from "./ratio.ts";
import { checkOut, type Tree } from "./reference.ts";
import { openSide, type Side } from "./side.ts";
import { DEFAULTS, type Turn, workloads } from "./workloads.ts";

/** What a turn leaves behind, such as events of purchases, must not run into the turn of the other side. */
const SETTLE_MS = 500;

interface Options {
  ref: string;
  names: string[];
  rounds: number;
  seconds: number;
  /** Settings of the work tree's service alone. */
  settings: Record<string, string>;
}

interface Figures extends Omit<Turn, "requests"> {
  nodeMs: number;
  databaseMs: number;
  statements: number;
  memoryBytes: number;
}

const FIGURES: {
  name: string;
  of: keyof Figures;
  digits: number;
  isMoreBetter?: true;
  unit?: number;
  isOneSample?: true;
}[] = [
  { name: "per second", of: "perSecond", digits: 0, isMoreBetter: true },
  { name: "p50 ms", of: "p50", digits: 2 },
  { name: "Node CPU ms", of: "nodeMs", digits: 3 },
  { name: "PostgreSQL CPU ms", of: "databaseMs", digits: 3 },
  { name: "statements", of: "statements", digits: 2 },
  // It belongs to the process more than to the round, and each side has one.
  { name: "memory MB", of: "memoryBytes", digits: 0, unit: 1e6, isOneSample: true },
];

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: "string", default: "8" },
      seconds: { type: "string", default: "3" },
      setting: { type: "string", multiple: true, default: [] },
    },
  });
  const [ref, ...names] = positionals;
  const unknown = names.find((name) => !workloads[name]);
  if (!ref || unknown)
    throw new Error(
      `npm run bench:compare REF [workload …], of ${Object.keys(workloads).join(", ")}; default: ${DEFAULTS.join(", ")}`,
    );
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (!Number.isInteger(rounds) || rounds < MIN_ROUNDS)
    throw new Error(`--rounds ${values.rounds}: a number, at least ${MIN_ROUNDS}`);
  if (!(seconds > 0)) throw new Error(`--seconds ${values.seconds}: a number of seconds`);
  const settings = Object.fromEntries(values.setting.map(readSetting));
  return { ref, names: names.length > 0 ? names : DEFAULTS, rounds, seconds, settings };
}

function readSetting(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new Error(`--setting ${text}: NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}

async function compare({ ref, names, rounds, seconds, settings }: Options): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-compare-data-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  const before = await checkOut(ref);
  const after: Tree = { root: ROOT, name: "work tree" };
  const first = await openSide(before, join(folder, "first"), {});
  const second = await openSide(after, join(folder, "second"), settings);
  for (const name of names) {
    const where = machine();
    console.error(`${name}: ${rounds} rounds`);
    const figures = await measureInTurns(name, [first, second], rounds, seconds);
    for (const side of [first, second]) await side.prepare({ kind: "verify ledger" });
    console.log(`\n## ${name}\n\n${tableOf(before.name, figures)}\n\n_${where}_`);
  }
}

/** A B, B A, A B …: what grows over time, such as the tables, meets both sides alike. */
async function measureInTurns(
  name: string,
  sides: [Side, Side],
  rounds: number,
  seconds: number,
): Promise<[Figures[], Figures[]]> {
  const figures: [Figures[], Figures[]] = [[], []];
  const turns: (() => Promise<Turn>)[] = [];
  for (const side of sides) turns.push(await workloads[name]!(side, seconds));
  for (const turn of turns) await turn();
  for (let round = 0; round < rounds; round++) {
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      await sleep(SETTLE_MS);
      figures[at].push(await measure(sides[at], turns[at]!));
    }
  }
  return figures;
}

async function measure(side: Side, turn: () => Promise<Turn>): Promise<Figures> {
  const before = await side.usage();
  const { requests, perSecond, p50 } = await turn();
  const after = await side.usage();
  const each = (of: keyof typeof after) => (after[of] - before[of]) / requests;
  return {
    ...{
      perSecond,
      p50,
      nodeMs: each("nodeMs"),
      databaseMs: each("databaseMs"),
      statements: each("statements"),
    },
    memoryBytes: await side.memoryBytes(),
  };
}

function tableOf(ref: string, [first, second]: [Figures[], Figures[]]): string {
  const rows = FIGURES.map(({ name, of, digits, isMoreBetter = false, unit = 1, isOneSample }) => {
    const [before, after] = [first, second].map((side) => side.map((figures) => figures[of])) as [
      number[],
      number[],
    ];
    const middles = [before, after].map((values) => (median(values) / unit).toFixed(digits));
    const ratio = compareRounds(before, after);
    if (!ratio) return [name, ...middles, "", "", ""];
    if (isOneSample) return [name, ...middles, ratio.median.toFixed(3), "", ""];
    const interval = `${ratio.low.toFixed(3)}–${ratio.high.toFixed(3)}`;
    return [name, ...middles, ratio.median.toFixed(3), interval, judge(ratio, isMoreBetter)];
  });
  return toMarkdown({
    columns: ["figure", ref, "work tree", "ratio", "90 % interval", "change"],
    rows,
    notes: [],
  });
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
}
try {
  await compare(readOptions());
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await endAll();
}
