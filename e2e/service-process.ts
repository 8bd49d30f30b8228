import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../", import.meta.url).pathname;
const START_SECONDS = 60;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A port that nobody used a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A folder that goes away with the test. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "stoa-e2e-"));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** The settings of this process that a child needs, and none of the tests' own. */
export function environmentWith(settings: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(STOA_|DATABASE_URL|PORT$|HOST$|NODE_TEST_CONTEXT|NODE_OPTIONS)/.test(name),
  );
  return { ...Object.fromEntries(inherited), STOA_LOG_LEVEL: "warn", ...settings };
}

/** A command line of the README, run as it stands by a shell in the project's folder. */
export function shell(line: string, settings: Record<string, string>): Promise<Ended> {
  return endOf(
    spawn("bash", ["-euo", "pipefail", "-c", line], { cwd: root, env: environmentWith(settings) }),
  );
}

function endOf(child: ChildProcess): Promise<Ended> {
  const said = { stdout: "", stderr: "" };
  child.stdout!.on("data", (chunk) => {
    said.stdout += chunk;
  });
  child.stderr!.on("data", (chunk) => {
    said.stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...said }));
  });
}

export interface Started {
  origin: string;
  /** The key that the box shows. */
  key: string;
  /** The line under the box. */
  curl: string;
  stdout: string;
  /** Of npm itself. */
  npm: ChildProcess;
  /** Of the node process that serves. */
  servicePid: number;
  /** Of the PostgreSQL that it runs. */
  postgresPid: number;
  ended: Promise<Ended>;
}

/** `npm start`, until the line under the box is printed. */
export async function npmStart(dataDir: string, settings: Record<string, string> = {}): Promise<Started> {
  const port = await freePort();
  const env = environmentWith({ PORT: String(port), STOA_DATA_DIR: dataDir, ...settings });
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
    origin: `http://127.0.0.1:${port}`,
    key: /stoa_test_\w+/.exec(stdout)![0],
    curl,
    stdout,
    npm,
    servicePid: await servingChild(npm.pid!),
    postgresPid: Number(postmaster.split("\n")[0]),
    ended,
  };
}

/** npm runs the script in a shell that `exec`s it, so the service is among npm's children. */
async function servingChild(npmPid: number): Promise<number> {
  const children = (await readFile(`/proc/${npmPid}/task/${npmPid}/children`, "utf8")).trim().split(" ");
  return Number(children[0]);
}

export async function stop(started: Started): Promise<Ended> {
  started.npm.kill("SIGTERM");
  return started.ended;
}
