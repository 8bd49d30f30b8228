/**
 * Runs every test, the named files, or with `--quick` those that start no process. Starts a temporary PostgreSQL and
 * migrates the template that each test file clones. Worker processes run the files; the last line counts the tests.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { createSchema } from "../fake-payments/src/index.ts";
import { createLog } from "../service/src/core/log.ts";
import { jobKinds } from "../service/src/job-kinds.ts";
import { openPool } from "../service/src/platform/db/database.ts";
import { migrate } from "../service/src/platform/db/migrate.ts";
import { openJobQueue } from "../service/src/platform/jobs/job-queue.ts";
import { TEMPLATE } from "../service/test/market.ts";
import { startTemporaryPostgres, urlOf } from "../service/test/temporary-postgres.ts";
import { childProcesses, descendantsCpuMs, killTree } from "./child-processes.ts";
import { listQuickTestFiles, listTestFiles } from "./test-files.ts";
import { NO_MORE } from "./test-protocol.ts";
import type { TestResult } from "./test-reporter.ts";

const ROOT = resolve(import.meta.dirname, "..");
/** Node's compile cache, kept between runs. */
const COMPILED = resolve(ROOT, "node_modules/.cache/stoa-tests");
const WORKER = resolve(import.meta.dirname, "test-worker.ts");
const REPORTER = resolve(import.meta.dirname, "test-reporter.ts");
/** The limit of one file; then its worker is killed and the file counts as failed. */
const FILE_MINUTES = Number(process.env["STOA_TEST_FILE_MINUTES"] ?? 8);
/**
 * A worker is replaced after this many files, because its heap grows with each file's modules: to 1.2 GB after a hundred. A run on two
 * cores stays below it, since each new worker compiles the service again.
 */
const FILES_PER_WORKER = 200;
/**
 * With Node's default young generation, garbage collection takes an eighth of a worker's time. Own processes keep the
 * default, since they may measure memory.
 */
const HEAP = ["--min-semi-space-size=16", "--max-semi-space-size=64"];
/** One more than cores: a file waits half of its time for PostgreSQL, a process or a timer. With two more, the run takes longer. */
const WORKERS = availableParallelism() + 1;
/** Files that need a fresh process, because they inspect loaded modules or leave a global such as a tracer. */
const OWN_PROCESS = /\.process\.test\.ts$/;

function testFiles(): string[] {
  const named = process.argv.slice(2);
  if (named[0] === "--quick") return listQuickTestFiles();
  return named.length > 0 ? named.map((file) => resolve(file)) : listTestFiles();
}

const server = await startTemporaryPostgres();
const admin = openPool({ target: server.connection, maxConnections: 1 });
await admin.query(`create database ${TEMPLATE}`);
await admin.end();
const template = openPool({ target: { ...server.connection, database: TEMPLATE }, maxConnections: 1 });
await migrate(template, new Date());
// Created once here, so that test databases get the job queues by cloning.
await (await openJobQueue(template, createLog("warn"), jobKinds)).close();
await createSchema(template);
await template.end();
process.env["STOA_TEST_DATABASE"] = urlOf(server, "postgres");
process.env["NODE_COMPILE_CACHE"] ??= COMPILED;
/** A folder for what the files of a run create once and share. */
const shared = await mkdtemp(join(tmpdir(), "stoa-tests-"));
process.env["STOA_TEST_SHARED"] = shared;

function endWorker({ pid }: ChildProcess): void {
  if (pid !== undefined) killTree(pid);
}

async function leaveNothing(): Promise<void> {
  for (const worker of workers) endWorker(worker);
  await server.stop();
  await rm(shared, { recursive: true, force: true });
}

// An interrupted run must not leave the server behind.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void leaveNothing().finally(() => process.exit(1));
  });
}

const files = testFiles();
const needsOwnProcess = (file: string | undefined): boolean => file !== undefined && OWN_PROCESS.test(file);
const workers = new Set<ChildProcess>();
const counts = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];
const costs: { path: string; cpuMs: number; ms: number }[] = [];
/** The most expensive files, which the end of a run names. */
const COSTS_SHOWN = 10;

/** Runs files in one worker process after the other, until none is left. */
async function runFiles(): Promise<void> {
  while (files.length > 0) await runWorker();
}

/** Resolves when the worker has ended: no files left, replaced, killed or crashed. */
const runWorker = (): Promise<void> => new Promise((done) => new TestWorker(done));

type WorkerMessage = TestResult | { type: "worker:free" } | { type: "worker:error"; error: string };

class TestWorker {
  readonly #isForOwnProcess = needsOwnProcess(files[0]);
  readonly #process = fork(WORKER, {
    execArgv: [
      ...(this.#isForOwnProcess ? [] : HEAP),
      `--test-reporter=${REPORTER}`,
      "--test-reporter-destination=stdout",
    ],
    env: { ...process.env, STOA_TEST_FILE_MINUTES: String(FILE_MINUTES) },
  });
  #file: string | null = null;
  #isFree = false;
  #results: TestResult[] = [];
  #filesRun = 0;
  #cpuBefore = 0;
  #limit: NodeJS.Timeout | undefined;

  constructor(onEnd: () => void) {
    workers.add(this.#process);
    this.#process.on("message", (message: WorkerMessage) => this.#onMessage(message));
    this.#process.once("exit", (code, signal) => {
      workers.delete(this.#process);
      if (this.#file !== null) this.#failFile(this.#file, signal ?? `exit code ${code}`);
      onEnd();
    });
  }

  #onMessage(message: WorkerMessage): void {
    if (message.type === "worker:free") this.#isFree = true;
    else if (message.type === "worker:error") this.#addFailure("error that no test awaits", 1, message.error);
    else this.#results.push(message);
    // The file's suite reports last.
    if ("nesting" in message && message.nesting === 0) this.#endFile();
    this.#giveFile();
  }

  #giveFile(): void {
    if (!this.#isFree || this.#file !== null) return;
    this.#isFree = false;
    const isFit = needsOwnProcess(files[0])
      ? this.#isForOwnProcess && this.#filesRun === 0
      : this.#filesRun < (this.#isForOwnProcess ? 1 : FILES_PER_WORKER);
    const file = isFit ? (files.shift() ?? null) : null;
    this.#file = file;
    this.#filesRun++;
    this.#process.send(file ?? NO_MORE);
    if (file === null) return;
    // A test's own timeout cannot end a file whose event loop is blocked.
    this.#limit = setTimeout(() => endWorker(this.#process), (FILE_MINUTES + 1) * 60_000);
  }

  #endFile(): void {
    clearTimeout(this.#limit);
    if (this.#file !== null) {
      const cpu = this.#results.at(-1)?.cpuMs ?? 0;
      print(this.#file, this.#results, cpu - this.#cpuBefore);
      this.#cpuBefore = cpu;
    }
    this.#file = null;
    this.#results = [];
  }

  #failFile(file: string, reason: string): void {
    this.#addFailure(file, 0, `The worker ended before the file did: ${reason}`);
    this.#endFile();
  }

  #addFailure(name: string, nesting: number, error: string): void {
    this.#results.push({ type: "fail", name, nesting, suite: false, skip: null, ms: 0, cpuMs: 0, error });
  }
}

function print(file: string, results: TestResult[], cpuMs: number): void {
  const path = relative(ROOT, file);
  for (const { type, name, nesting, suite, skip, error, ms } of parentsFirst(results)) {
    const title = name === file ? `${path}, ${cpuMs.toFixed(0)} ms of CPU` : name;
    if (name === file) costs.push({ path, cpuMs, ms });
    const mark = type === "fail" ? "✖" : skip === null ? "✔" : "﹣";
    console.log(`${"  ".repeat(nesting)}${mark} ${title} (${ms.toFixed(0)} ms)${skip ? ` # ${skip}` : ""}`);
    if (error !== null) failures.push(`✖ ${path}: ${title}\n${error}`);
    if (suite && error === null) continue;
    if (type === "fail") counts.failed++;
    else if (skip === null) counts.passed++;
    else counts.skipped++;
  }
}

/** A suite reports after its tests, and is printed before them. */
function parentsFirst(results: TestResult[]): TestResult[] {
  // By nesting: finished results that wait for their parent.
  const ended: TestResult[][] = [];
  for (const result of results) {
    const siblings = ended[result.nesting] ?? [];
    const children = ended[result.nesting + 1] ?? [];
    ended[result.nesting] = [...siblings, result, ...children];
    ended[result.nesting + 1] = [];
  }
  return ended.flat();
}

function listMostExpensive(): string {
  return costs
    .toSorted((one, other) => other.cpuMs - one.cpuMs)
    .slice(0, COSTS_SHOWN)
    .map(({ path, cpuMs, ms }) => `${seconds(cpuMs)} of ${seconds(ms)} ${path}`)
    .join("\n");
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1).padStart(6)} s`;

const startedAt = Date.now();
await Promise.all(Array.from({ length: Math.min(WORKERS, files.length) }, runFiles));
const postgres = childProcesses(process.pid).find(({ command }) => command.includes("postgres"));
const postgresCpuMs = postgres ? descendantsCpuMs(postgres.pid) : 0;
await leaveNothing();
if (costs.length > COSTS_SHOWN)
  console.log(
    `\nMost CPU time, PostgreSQL's not included (${seconds(postgresCpuMs).trim()} in all):\n${listMostExpensive()}`,
  );
if (failures.length > 0) console.log(`\nFailed:\n${failures.join("\n\n")}`);
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
console.log(`\n${((Date.now() - startedAt) / 1_000).toFixed(0)} s`);
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;
