import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startCollector } from "@stoa/service/test/collector.ts";
import { inFullRun, isFullSize } from "@stoa/service/test/full-size.ts";
import { becomes, until } from "@stoa/service/test/until.ts";
import {
  copyDemoData,
  npmStart,
  STOA,
  type Started,
  shell,
  stop,
  temporaryFolder,
} from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  folder = await temporaryFolder();
  if (isFullSize) await copyDemoData(folder.path);
});
after(() => folder.remove());

const auth = ({ key }: Started) => ({ authorization: `Bearer ${key}`, "content-type": "application/json" });
const post = (service: Started, path: string, body: object, headers = {}) =>
  fetch(`${service.origin}/v1${path}`, {
    method: "POST",
    headers: { ...auth(service), ...headers },
    body: JSON.stringify(body),
  });

async function anyProduct(service: Started): Promise<string> {
  const reply = await fetch(`${service.origin}/v1/products?search=job%20interviewer`, {
    headers: auth(service),
  });
  const { data } = (await reply.json()) as { data: { id: string }[] };
  return data[0]!.id;
}

async function countRuns(service: Started): Promise<number> {
  const reply = await fetch(`${service.origin}/v1/ai/executions`, { headers: auth(service) });
  return ((await reply.json()) as { meta: { total: number } }).meta.total;
}

const runSlowly = (service: Started, productId: string) =>
  post(service, "/ai/execute", {
    productId,
    apiKeyId: "sandbox",
    variables: { position: "baker" },
    options: { model: "sandbox-slow" },
  });

test(
  "SIGTERM to npm: a running call ends and is traced, new calls are refused, exit code 0",
  inFullRun,
  async () => {
    const collector = await startCollector();
    const service = await npmStart(folder.path, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      // So long that only the shutdown flushes spans.
      OTEL_BSP_SCHEDULE_DELAY: "600000",
    });
    const productId = await anyProduct(service);
    assert.equal((await post(service, "/purchases", { productId })).status, 201);
    const running = runSlowly(service, productId);
    await until("it runs", async () => (await countRuns(service)) > 0);
    service.npm.kill("SIGTERM");
    const answer = await running;
    assert.equal(answer.status, 200, await answer.text());
    const { code } = await service.ended;
    assert.equal(code, 0);
    await assert.rejects(fetch(`${service.origin}/healthz`));
    const sent = Buffer.concat(collector.bodies).toString("latin1");
    for (const name of [
      "run prompt",
      "chat sandbox-slow",
      "service.name",
      "gen_ai.client.operation.duration",
    ])
      assert.ok(sent.includes(name), name);
    await collector.close();
  },
);

test(
  "a second service on the same data folder: joins the database and survives the first",
  inFullRun,
  async () => {
    const first = await npmStart(folder.path);
    const second = await npmStart(folder.path);
    assert.equal(second.postgresPid, first.postgresPid);
    assert.equal(second.key, first.key);
    assert.equal((await stop(first)).code, 0);
    const reply = await fetch(`${second.origin}/v1/products`, { headers: auth(second) });
    assert.equal(reply.status, 200);
    assert.equal((await stop(second)).code, 0);
    // A child of an ended process may stay a zombie until init collects it.
    await becomes(
      () => readFile(`/proc/${second.postgresPid}/stat`, "utf8").catch(() => "gone"),
      (stat) => /^gone$|^\d+ \(postgres\) [ZX]/.test(stat),
      "PostgreSQL has ended",
    );
  },
);

test("start with several wrong settings: lists every mistake and starts nothing", async () => {
  const { code, stderr } = await shell(`${STOA} start`, {
    STOA_DATA_DIR: folder.path,
    PORT: "99999",
    STOA_ENVIRONMENT: "staging",
    STOA_CURRENCIES: "USD,BTC",
  });
  assert.equal(code, 1);
  for (const name of ["PORT", "STOA_ENVIRONMENT", "STOA_CURRENCIES"]) assert.match(stderr, new RegExp(name));
});

test("start on a used port: one line names PORT, and no database is created", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const missing = join(folder.path, "missing");
  const ended = await shell(`${STOA} start`, { STOA_DATA_DIR: missing, PORT: String(port) });
  other.close();
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, new RegExp(`^Another program listens on port ${port} .*set PORT.*\n$`));
  assert.ok(!existsSync(join(missing, "postgres")));
});

test("start without PostgreSQL: one line names the address, the setting and what to check", async () => {
  const settings = { STOA_DATA_DIR: folder.path, PORT: "0" };
  const DATABASE_URL = "postgres://stoa:secret@127.0.0.1:1/stoa";
  const key = `1:${Buffer.alloc(32, 7).toString("base64")}`;
  const { code, stderr } = await shell(`${STOA} start`, {
    ...settings,
    DATABASE_URL,
    STOA_MASTER_KEYS: key,
    STOA_SESSION_KEYS: key,
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^PostgreSQL does not answer at 127\.0\.0\.1:1 \(DATABASE_URL\): connect ECONNREFUSED [^\n]*\. Is it running, and is the address right\?$/m,
  );
  assert.doesNotMatch(stderr, /^ +at |secret/m);
});

test(
  "commands without a database: name the folder and create none, except start, migrate, restore and reset",
  inFullRun,
  async () => {
    const missing = join(folder.path, "mistyped");
    for (const command of ["key create --user a@example.com --name A", "ledger verify", "doctor"]) {
      const { code, stderr } = await shell(`${STOA} ${command}`, { STOA_DATA_DIR: missing });
      assert.equal(code, 1, command);
      assert.match(stderr, new RegExp(`^There is no database in ${missing}: set STOA_DATA_DIR .*\n$`));
    }
    assert.ok(!existsSync(missing));
  },
);

test("start in production without secrets: refused", inFullRun, async () => {
  const { code, stderr } = await shell(`${STOA} start`, {
    STOA_DATA_DIR: folder.path,
    STOA_ENVIRONMENT: "production",
  });
  assert.equal(code, 1);
  assert.match(stderr, /STOA_MASTER_KEYS must be set in production/);
  assert.match(stderr, /STOA_SESSION_KEYS must be set in production/);
});

test("a test database: refuses a production process and other master keys", inFullRun, async () => {
  const key = `1:${Buffer.alloc(32, 7).toString("base64")}`;
  const settings = { STOA_DATA_DIR: folder.path, STOA_MASTER_KEYS: key, STOA_SESSION_KEYS: key };
  const production = await shell(`${STOA} user create --email a@example.com --name A`, {
    ...settings,
    STOA_ENVIRONMENT: "production",
    STOA_MAIL: "off",
  });
  assert.equal(production.code, 1);
  assert.match(production.stderr, /This database is a test database/);
  const foreign = await shell(`${STOA} user create --email a@example.com --name A`, settings);
  assert.equal(foreign.code, 1);
  assert.match(foreign.stderr, /STOA_MASTER_KEYS lacks the key/);
});

test("reset: refused while a service uses the database, empties it afterwards", inFullRun, async () => {
  const service = await npmStart(folder.path);
  const refused = await shell(`${STOA} reset`, { STOA_DATA_DIR: folder.path });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /a service is using this database/);
  await stop(service);
  const done = await shell(`${STOA} reset --json`, { STOA_DATA_DIR: folder.path });
  assert.deepEqual(JSON.parse(done.stdout), { reset: true });
  const migrated = await shell(`${STOA} migrate --json`, { STOA_DATA_DIR: folder.path });
  assert.ok(JSON.parse(migrated.stdout).applied.includes("0001_people.sql"));
});

test("start with other migrations than the database: stops and names reset", inFullRun, async () => {
  const other = await temporaryFolder();
  const server = await import("@stoa/service/platform/db/embedded.ts").then(({ startEmbedded }) =>
    startEmbedded(other.path),
  );
  const { openPool } = await import("@stoa/service/platform/db/database.ts");
  const pool = openPool({ target: server.connection });
  await pool.query(
    "create table schema_migrations (name text primary key, checksum text, applied_at timestamptz)",
  );
  await pool.query("insert into schema_migrations values ('0001_people.sql', 'other', now())");
  await pool.end();
  const { code, stderr } = await shell(`${STOA} start`, {
    STOA_DATA_DIR: other.path,
    PORT: "0",
  });
  assert.equal(code, 1);
  assert.match(stderr, /0001_people\.sql was changed after it ran/);
  assert.match(stderr, /stoa-server reset/);
  await server.stop();
  await other.remove();
});

test("start with an old Node: one sentence names the required version", async () => {
  const fake = `Object.defineProperty(process, "versions", { value: { node: "20.1.0" } }); await import("./service/bin/stoa-server.mjs")`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", fake], {
    cwd: new URL("../", import.meta.url).pathname,
  });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 1);
  assert.match(stderr, /needs Node 22\.19 or newer/);
});

test("the embedded PostgreSQL is killed: the service restarts it and continues", inFullRun, async () => {
  const service = await npmStart(folder.path);
  const pidFile = join(folder.path, "postgres", "postmaster.pid");
  const pid = async () => Number((await readFile(pidFile, "utf8").catch(() => "")).split("\n")[0]);
  const killed = await pid();
  process.kill(killed, "SIGKILL");
  const isReady = async () =>
    (await pid()) !== killed && (await fetch(`${service.origin}/readyz`).catch(() => null))?.status === 200;
  await until("it is ready", isReady);
  const reply = await fetch(`${service.origin}/v1/products?limit=1`, { headers: auth(service) });
  assert.equal(reply.status, 200);
  assert.equal((await stop(service)).code, 0);
});
