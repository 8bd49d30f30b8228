/**
 * Runs every test, or the files that are named: starts one throw-away PostgreSQL, migrates the template that each
 * test file clones, runs the files in parallel, and ends with a line that counts them.
 */
import { globSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { openPool } from "../service/src/db/database.ts";
import { migrate } from "../service/src/db/migrate.ts";
import { openJobs } from "../service/src/jobs/jobs.ts";
import { createLog } from "../service/src/log.ts";
import { mailJob } from "../service/src/mail/mail.ts";
import { TEMPLATE } from "../service/test/market.ts";
import { startThrowaway, urlOf } from "../service/test/throwaway.ts";
import { childProcesses, killTree } from "./child-processes.ts";

const PATTERNS = ["{contract,service}/**/*.test.ts", "e2e/**/*.e2e.ts"];
/** What Node made of our sources: half of what a process costs until its first test. It is kept from run to run. */
const COMPILED = resolve(import.meta.dirname, "../node_modules/.cache/stoa-tests");
const SEED = resolve(import.meta.dirname, "../service/test/seed.ts");
/** The limit of one test. The slowest takes a minute and a half on a slow machine. */
const TEST_MINUTES = 5;
/** The limit of the whole run, after which it names the files that have not ended and fails. */
const RUN_MINUTES = 60;
/** Those that start processes take the longest. */
const LONG = /\.e2e\.ts$|crashes/;

/** The long ones first, so that in the end no core waits for one of them. */
function testFiles(): string[] {
  const named = process.argv.slice(2);
  if (named.length > 0) return named;
  const files = globSync(PATTERNS, { exclude: ["**/node_modules/**"] }).sort();
  return [...files.filter((file) => LONG.test(file)), ...files.filter((file) => !LONG.test(file))];
}

const server = await startThrowaway();
const admin = openPool({ target: server.connection, maxConnections: 1 });
await admin.query(`create database ${TEMPLATE}`);
await admin.end();
const template = openPool({ target: { ...server.connection, database: TEMPLATE }, maxConnections: 1 });
await migrate(template, new Date());
// Made once here, the job queue costs a market of a test nothing.
await (await openJobs(template, createLog("warn"), [mailJob])).close();
await template.end();
process.env["STOA_TEST_DATABASE"] = urlOf(server, "postgres");
process.env["NODE_COMPILE_CACHE"] ??= COMPILED;
/** For what the files of a run make once and share. */
const shared = await mkdtemp(join(tmpdir(), "stoa-tests-"));
process.env["STOA_TEST_SHARED"] = shared;

async function leaveNothing(): Promise<void> {
  await server.stop();
  await rm(shared, { recursive: true, force: true });
}

// Ended early, the run leaves no server behind.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void leaveNothing().finally(() => process.exit(1));
  });
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const stream = run({
  files: testFiles(),
  // Without --test-force-exit a failed test that left a child process or a timer behind keeps its file, and the run, from ending.
  execArgv: ["--import", SEED, "--test-force-exit"],
  // One more than there are cores: a file waits half of its time, for PostgreSQL, a process or a clock.
  concurrency: availableParallelism() + 1,
  timeout: TEST_MINUTES * 60_000,
});
// The timeout of a test cannot end a file whose event loop is blocked.
setTimeout(async () => {
  const unfinished = childProcesses(process.pid).filter(({ command }) => command.includes(".ts"));
  console.log(`\nThe tests did not finish within ${RUN_MINUTES} minutes. Not finished:`);
  for (const { pid, command } of unfinished) {
    console.log(`  ${command.split(" ").at(-1)}`);
    killTree(pid);
  }
  await leaveNothing();
  process.exit(1);
}, RUN_MINUTES * 60_000).unref();
stream.on("test:pass", (event) => {
  if (event.details.type === "suite") return;
  if (event.skip !== undefined) counts.skipped++;
  else counts.passed++;
});
stream.on("test:fail", (event) => {
  if (event.details.type !== "suite") counts.failed++;
});
stream.compose(new spec()).pipe(process.stdout);
stream.on("end", async () => {
  await leaveNothing();
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  // After the reporter's own summary, which it writes when the stream has ended.
  setImmediate(() => console.log(`\n${counts.passed} passed, ${counts.failed} failed${skipped}`));
  process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;
});
