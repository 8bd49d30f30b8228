/**
 * Compares Stoa with Medusa and Vendure: the same products, queries and orders in one session. Writes summaries into
 * bench/README.md and the whole tables into README.md of this folder.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { tryFileLock } from "@stoa/service/platform/db/embedded-lock.ts";
import { machine } from "../machine.ts";
import { atEnd, endAll } from "../processes.ts";
import { type Report, toMarkdown, writeReport } from "../report.ts";
import { type CaseResult, compare } from "./compare.ts";
import { medusa } from "./medusa.ts";
import { compareOrders, type OrderCaseResult } from "./orders.ts";
import { startPeerPostgres } from "./peer-postgres.ts";
import { DIFFERENT } from "./products.ts";
import { shortOrderReport, shortReport, wholeOrderReport, wholeReport } from "./reports.ts";
import { startStoa } from "./stoa.ts";
import type { Peer, Running, Target } from "./system.ts";
import { vendure } from "./vendure.ts";

const SIZES = [10_000, 100_000];
const ROUNDS = 3;
const PARTS = ["queries", "orders"] as const;
type Part = (typeof PARTS)[number];
const OWN_README = new URL("./README.md", import.meta.url);

interface Options {
  /** The folder for installations and databases of the peers, reused by later runs. */
  work: string;
  sizes: number[];
  rounds: number;
  parts: Part[];
  /** Installs and loads without measuring. */
  prepareOnly: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      work: { type: "string", default: join(tmpdir(), "stoa-peers") },
      sizes: { type: "string", default: SIZES.join(",") },
      rounds: { type: "string", default: String(ROUNDS) },
      only: { type: "string", default: PARTS.join(",") },
      prepare: { type: "boolean", default: false },
    },
  });
  const sizes = values.sizes.split(",").map(Number);
  const fits = (size: number) => (size > DIFFERENT ? size % DIFFERENT === 0 : size >= 1_000);
  if (!sizes.every(fits))
    throw new Error(`--sizes: 1000 to ${DIFFERENT}, or multiples of ${DIFFERENT}, with commas between.`);
  return {
    work: resolve(values.work),
    sizes,
    rounds: Number(values.rounds),
    parts: values.only.split(",").map(toPart),
    prepareOnly: values.prepare,
  };
}

function toPart(name: string): Part {
  const part = PARTS.find((known) => known === name);
  if (!part) throw new Error("--only: queries, orders, or both with a comma between.");
  return part;
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  console.log(`${what} …`);
  const begun = performance.now();
  const result = await work();
  console.log(`${what}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  return result;
}

interface SizeResult {
  cases: CaseResult[];
  orders: OrderCaseResult[];
}

async function runSize(peers: Peer[], size: number, { work, rounds, parts }: Options): Promise<SizeResult> {
  const starts = [
    { name: "Stoa filled and started", start: () => startStoa(work, size) },
    ...peers.map(({ name, start }) => ({ name: `${name} started`, start: () => start(size) })),
  ];
  const servers: Running[] = [];
  try {
    for (const { name, start } of starts) servers.push(await timed(`${size} products, ${name}`, start));
    const targets = servers.flatMap((server) => server.ways.map((way): Target => ({ ...way, server })));
    const measure = <T>(part: Part, work: () => Promise<T[]>) =>
      parts.includes(part) ? timed(`${size} products, ${part}`, work) : [];
    return {
      cases: await measure("queries", () => compare(targets, size, rounds)),
      // Last, because orders change lists and their order.
      orders: await measure("orders", () => compareOrders(servers, size, rounds)),
    };
  } finally {
    for (const server of servers) await server.end();
  }
}

async function run(options: Options): Promise<void> {
  const { work, sizes, parts, prepareOnly } = options;
  await mkdir(work, { recursive: true });
  const lock = tryFileLock(join(work, "run.lock"));
  if (!lock) throw new Error(`Another run works in ${work}.`);
  atEnd(async () => lock.release());
  const postgres = await startPeerPostgres(join(work, "peers"));
  const peers = [await medusa(work, postgres), await vendure(work, postgres)];
  for (const peer of peers) {
    for (const size of sizes) {
      await timed(`${peer.name} ${peer.version}, ${size} products`, () => peer.prepare(size));
    }
  }
  if (prepareOnly) return;
  const where = machine();
  const results: SizeResult[] = [];
  for (const size of sizes) results.push(await runSize(peers, size, options));
  const cases = results.flatMap((result) => result.cases);
  const orders = results.flatMap((result) => result.orders);
  const resultsOf = { queries: cases, orders };
  for (const part of parts) {
    const content = JSON.stringify({ where, [part]: resultsOf[part] }, null, 1);
    await writeFile(join(work, `${part}.json`), content);
  }
  const versions = peers.map(({ name, version }) => `${name} ${version}`).join(", ");
  const textOf = (report: Report) => `${toMarkdown(report)}\n\n_${where}; ${versions}_`;
  const isWhole = sizes.join() === SIZES.join();
  const show = async (name: string, report: Report, file?: URL) => {
    if (report.rows.length === 0) return;
    console.log(`\n${textOf(report)}`);
    if (isWhole) await writeReport(name, textOf(report), file);
  };
  await show("peers", shortReport(cases));
  await show("every case", wholeReport(cases), OWN_README);
  await show("peers' orders", shortOrderReport(orders));
  await show("every order", wholeOrderReport(orders), OWN_README);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void endAll().finally(() => process.exit(1)));
}
try {
  await run(readOptions());
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await endAll();
}
