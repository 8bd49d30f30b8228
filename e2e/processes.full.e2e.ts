import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "@stoa/service/test/free-port.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { environmentWith, temporaryFolder } from "./service-process.ts";

const QUOTA = 20;
const CLIENTS = 12;
const AMPLE = [{ requests: 1_000_000, seconds: 3_600 }];

const keys = { master: randomBytes(32), session: randomBytes(32) };
const secret = (bytes: Buffer) => `1:${bytes.toString("base64")}`;
const command = new URL("../service/bin/stoa-server.mjs", import.meta.url).pathname;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let market: Market;
let node: Node;
let reader: Client;
before(async () => {
  folder = await temporaryFolder();
  market = await openMarket({
    now: () => new Date(),
    config: { masterKeys: [{ id: "1", bytes: keys.master }], sessionKeys: [keys.session] },
  });
  reader = await market.createUser({ plan: "pro" });
  node = await startNode();
  await node.isReady;
});
after(async () => {
  node.supervisor.kill("SIGKILL");
  await node.ended;
  await market.close();
  await folder.remove();
});

interface Node {
  origin: string;
  supervisor: ChildProcess;
  output: { stdout: string; stderr: string };
  isReady: Promise<void>;
  ended: Promise<number | null>;
}

/** Two processes for requests and one for background work, on the market's database. */
async function startNode(): Promise<Node> {
  const plansFile = join(folder.path, "plans.json");
  const plans = { free: { quotas: [{ requests: QUOTA, seconds: 3_600 }] }, pro: { quotas: AMPLE } };
  await writeFile(plansFile, JSON.stringify({ plans, sessions: AMPLE }));
  const port = await freePort();
  const supervisor = spawn(process.execPath, [command, "start"], {
    env: environmentWith({
      STOA_PROCESSES: "2",
      DATABASE_URL: market.target,
      STOA_DATA_DIR: folder.path,
      PORT: String(port),
      STOA_MASTER_KEYS: secret(keys.master),
      STOA_SESSION_KEYS: secret(keys.session),
      STOA_MAIL: "off",
      STOA_PLANS_FILE: plansFile,
    }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    supervisor[name].setEncoding("utf8").on("data", (text) => {
      output[name] += text;
    });
  const ended = new Promise<number | null>((resolve) => supervisor.once("close", resolve));
  const isReady = until("the box is printed", () => /^curl /m.test(output.stdout)).then(() => {});
  return { origin: `http://127.0.0.1:${port}`, supervisor, output, isReady, ended };
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);

const processes = () => childrenOf(node.supervisor.pid!);

interface Answer {
  status: number;
  text: string;
}

const LIST = "/v1/products?limit=1";
const freshConnection = new Agent({ keepAlive: false });

function get(path: string, { key = reader.key, agent = freshConnection } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const sent = request(`${node.origin}${path}`, { agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.once("error", reject);
    });
    sent.once("error", reject).end();
  });
}

interface Load {
  /** Of each client: what went wrong, in order. */
  failures: string[][];
  answered: number;
  stop(): Promise<void>;
}

/** Clients that send one request after the other on one connection each, and repeat none. */
function startLoad(): Load {
  const load = { failures: [] as string[][], answered: 0 };
  let isRunning = true;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const failures: string[] = [];
    load.failures.push(failures);
    while (isRunning) {
      const problem = await get(LIST, { agent }).then(
        ({ status }) => (status === 200 ? null : String(status)),
        (error: NodeJS.ErrnoException) => error.code ?? error.message,
      );
      if (problem) failures.push(problem);
      else load.answered++;
    }
    agent.destroy();
  });
  return Object.assign(load, {
    async stop() {
      isRunning = false;
      await Promise.all(clients);
    },
  });
}

async function answersAtLeast(load: Load, count: number): Promise<void> {
  const goal = load.answered + count;
  await until(`${count} more answers`, async () => load.answered >= goal);
}

async function readMetric(name: string, labels: string): Promise<number> {
  const { text } = await get("/metrics");
  const line = text.split("\n").find((one) => one.startsWith(`${name}{`) && one.includes(labels));
  return Number(line?.split(" ").at(-1));
}

test("two processes: one box, both answer on one port, and /metrics shows all of them", async () => {
  assert.equal(processes().length, 3);
  assert.equal(node.output.stdout.match(/^curl /gm)?.length, 1);
  assert.equal(node.output.stdout.match(/Stoa is ready/g)?.length, 1);
  for (let times = 0; times < 5 * CLIENTS; times++) assert.equal((await get(LIST)).status, 200);
  const { text } = await get("/metrics");
  for (const process of ["api-1", "api-2"])
    assert.match(
      text,
      new RegExp(
        `^http_request_duration_seconds_count{.*route="/v1/products".*process="${process}"} [1-9]`,
        "m",
      ),
    );
  for (const process of ["api-1", "api-2", "worker", "supervisor"])
    assert.match(text, new RegExp(`^process_resident_memory_bytes{process="${process}"} \\d+$`, "m"));
  assert.match(text, /^processes_running{role="api",process="supervisor"} 2$/m);
  // From the database: once, without a process.
  assert.equal(text.match(/^ledger_problems /gm)?.length, 1);
  const ready = await get("/readyz");
  assert.deepEqual(JSON.parse(ready.text), { status: "ready", problems: [], warnings: [] });
});

test("a rate limit: requests that reach different processes count together", async () => {
  const { key } = await market.createUser({ plan: "free" });
  const answers = await Promise.all(Array.from({ length: 3 * QUOTA }, () => get(LIST, { key })));
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, QUOTA);
  assert.equal(statuses.filter((status) => status === 429).length, 2 * QUOTA);
});

test("a revoked key: no process accepts it after the response", async () => {
  const session = await market.createSession(reader.userId);
  const send = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${session.key}`, "content-type": "application/json" };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const reply = await fetch(`${node.origin}/v1${path}`, sent);
    assert.ok(reply.ok, await reply.clone().text());
    return ((await reply.json()) as { data: { id: string; key: string } }).data;
  };
  const statusesOf = async (key: string) => {
    const answers = await Promise.all(Array.from({ length: CLIENTS }, () => get(LIST, { key })));
    return new Set(answers.map(({ status }) => status));
  };
  const { id, key } = await send("POST", "/api-keys", {
    name: "shared",
    permissions: { "products:read": true },
  });
  assert.deepEqual(await statusesOf(key), new Set([200]));
  await send("DELETE", `/api-keys/${id}`);
  assert.deepEqual(await statusesOf(key), new Set([401]));
});

test("kill -9 of a process under load: at most the requests on its connections fail, and it is replaced", async () => {
  const before = processes();
  const load = startLoad();
  await answersAtLeast(load, 5 * CLIENTS);
  const lost = await readMetric("processes_lost_total", 'role="api"');
  const [victim] = before;
  process.kill(victim!, "SIGKILL");
  await until("another process runs", async () => processes().length === 3 && !processes().includes(victim!));
  await until("it is ready", async () => (await readMetric("processes_running", 'role="api"')) === 2);
  await answersAtLeast(load, 5 * CLIENTS);
  await load.stop();
  for (const failures of load.failures) assert.ok(failures.length <= 1, String(failures));
  assert.equal(await readMetric("processes_lost_total", 'role="api"'), lost + 1);
  assert.match(node.output.stderr, /^api-1 ended \(SIGKILL\) and is started again$/m);
});

test("SIGHUP under load: every process is replaced, and no request fails", async () => {
  const before = processes();
  const load = startLoad();
  await answersAtLeast(load, 5 * CLIENTS);
  node.supervisor.kill("SIGHUP");
  await until("all processes are new", async () => /all processes are new/.test(node.output.stderr));
  await answersAtLeast(load, 5 * CLIENTS);
  await load.stop();
  assert.deepEqual(load.failures.flat(), []);
  const now = processes();
  assert.equal(now.length, 3);
  for (const pid of before) assert.ok(!now.includes(pid));
});

test("SIGTERM: running requests end, no process is left, and the port is free", async () => {
  const load = startLoad();
  await answersAtLeast(load, CLIENTS);
  const all = processes();
  node.supervisor.kill("SIGTERM");
  assert.equal(await node.ended, 0);
  await load.stop();
  for (const failure of load.failures.flat()) assert.match(failure, /^ECONN(REFUSED|RESET)$|socket hang up/);
  for (const pid of all) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  await assert.rejects(get("/healthz"), { code: "ECONNREFUSED" });
});

test("kill -9 of the supervisor: its processes end by themselves", async () => {
  node = await startNode();
  await node.isReady;
  const all = processes();
  node.supervisor.kill("SIGKILL");
  for (const pid of all)
    await until(`the process ${pid} ends`, async () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  await assert.rejects(get("/healthz"), { code: "ECONNREFUSED" });
});

test("a database with other migrations: the start names the problem once and ends", async () => {
  await market.query("update schema_migrations set checksum = 'other' where name = '0001_people.sql'");
  node = await startNode();
  node.isReady.catch(() => {});
  assert.equal(await node.ended, 1);
  assert.equal(node.output.stderr.match(/0001_people\.sql was changed after it ran/g)?.length, 1);
});
