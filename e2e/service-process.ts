import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { openPool } from "@stoa/service/platform/db/database.ts";
import { type EmbeddedDatabase, startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { until } from "@stoa/service/test/until.ts";
import { once, SHARED } from "./once.ts";

const root = new URL("../", import.meta.url).pathname;
const START_SECONDS = 180;
const LINE_SECONDS = 240;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "stoa-e2e-"));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** The shell command of `npx stoa-server` without npm, which takes a second. README and guides have npx. */
export const STOA = `'${process.execPath}' service/bin/stoa-server.mjs`;

/** A data folder as after a first start with the whole demo and its evaluations, created once per run and copied. */
export async function copyDemoData(dataDir: string): Promise<void> {
  const shop = join(SHARED, "shop");
  await once("loading the shop", () => makeShop(shop));
  await promisify(execFile)("cp", ["-a", `${shop}/.`, dataDir]);
}

async function makeShop(path: string): Promise<void> {
  const draft = await mkdtemp(join(SHARED, "draft-"));
  // The service joins this PostgreSQL, which runs without fsync.
  const server = await startEmbedded(draft, { settings: { fsync: "off" } });
  const service = await npmStart(draft);
  await mustListProducts(service);
  await finishDemo(server);
  await mustListProducts(service, DEMO_PRODUCTS);
  await stop(service);
  await server.stop();
  await rename(draft, path);
}

const PAGE = 3;
const DEMO_PRODUCTS = 250;

/** Asserts that the command below the box of a first start lists products at once. */
export async function mustListProducts({ curl }: Started, least = PAGE): Promise<void> {
  const { stdout, code } = await shell(curl, {});
  assert.equal(code, 0);
  const { success, data, meta } = JSON.parse(stdout);
  assert.equal(success, true);
  assert.equal(data.length, PAGE);
  assert.ok(meta.total >= least, `only ${meta.total} products`);
}

/** The service loads sales and runs evaluations after it has printed the box. Each test would start with them. */
async function finishDemo({ connection }: EmbeddedDatabase): Promise<void> {
  const pool = openPool({ target: connection, maxConnections: 1 });
  await until(
    "the demo is loaded and evaluated",
    async () => {
      await sleep(250);
      const { rows } = await pool.query(
        `select demo = 'loaded' and not exists (select 1 from evaluations where status = 'running') as done
           from installation`,
      );
      return rows[0].done;
    },
    START_SECONDS * 1000,
  );
  await pool.end();
}

/** The environment for a child, without the tests' own settings. */
export function environmentWith(settings: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(STOA_|OTEL_|DATABASE_URL|PORT$|HOST$|NODE_TEST_CONTEXT|NODE_OPTIONS)/.test(name),
  );
  return { ...Object.fromEntries(inherited), STOA_LOG_LEVEL: "warn", ...settings };
}

/**
 * Runs a command line of the README in the project's folder. Skips the user's shell settings, which bash reads when
 * stdin is a socket, as for rsh.
 */
export function shell(line: string, settings: Record<string, string>): Promise<Ended> {
  const child = spawn("bash", ["--norc", "-euo", "pipefail", "-c", line], {
    cwd: root,
    env: environmentWith(settings),
  });
  return Promise.race([
    endOf(child),
    sleep(LINE_SECONDS * 1000, null, { ref: false }).then(() => {
      child.kill("SIGKILL");
      throw new Error(`not ended after ${LINE_SECONDS} s: ${line}`);
    }),
  ]);
}

function endOf(child: ChildProcess): Promise<Ended> {
  const output = { stdout: "", stderr: "" };
  child.stdout!.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr!.on("data", (chunk) => {
    output.stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...output }));
  });
}

export interface Started {
  origin: string;
  /** From the printed box. */
  key: string;
  /** The command below the box. */
  curl: string;
  stdout: string;
  npm: ChildProcess;
  /** The node process of the service. */
  servicePid: number;
  postgresPid: number;
  ended: Promise<Ended>;
}

/** Runs `npm start` until the command below the box is printed. */
export async function npmStart(dataDir: string, settings: Record<string, string> = {}): Promise<Started> {
  const env = environmentWith({ PORT: "0", STOA_DATA_DIR: dataDir, ...settings });
  const npm = spawn("npm", ["start"], { cwd: root, env });
  let stdout = "";
  const ended = endOf(npm);
  const curl = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no box after ${START_SECONDS} s:\n${stdout}`)),
      START_SECONDS * 1000,
    );
    npm.stdout.on("data", (chunk) => {
      stdout += chunk;
      const line = /^curl .*$/m.exec(stdout);
      if (!line || !stdout.endsWith("\n")) return;
      clearTimeout(timer);
      resolve(line[0]);
    });
    void ended.then(({ code, stderr }) => {
      clearTimeout(timer);
      reject(new Error(`npm start ended with ${code}:\n${stderr}`));
    });
  });
  const postmaster = await readFile(join(dataDir, "postgres", "postmaster.pid"), "utf8");
  return {
    origin: /http:[^']+(?=\/v1\/)/.exec(curl)![0],
    key: /stoa_test_\w+/.exec(stdout)![0],
    curl,
    stdout,
    npm,
    servicePid: await servingChild(npm.pid!),
    postgresPid: Number(postmaster.split("\n")[0]),
    ended,
  };
}

/** npm runs the script in a shell that `exec`s Node, so the service is a child of npm. */
async function servingChild(npmPid: number): Promise<number> {
  const children = (await readFile(`/proc/${npmPid}/task/${npmPid}/children`, "utf8")).trim().split(" ");
  return Number(children[0]);
}

export async function stop(started: Started): Promise<Ended> {
  started.npm.kill("SIGTERM");
  return started.ended;
}
