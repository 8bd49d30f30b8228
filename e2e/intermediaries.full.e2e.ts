import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Service, startService } from "@stoa/service/app.ts";
import { createLog } from "@stoa/service/core/log.ts";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { freePort } from "@stoa/service/test/free-port.ts";
import { clientOf, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";

/** Debian's PgBouncer, nginx and HAProxy run with the configurations of the guide to operating. */
const NOBODY = 65_534;

let market: Market;
let guide: string;
before(async () => {
  market = await openMarket();
  guide = await readFile(new URL("../docs/guides/operating.md", import.meta.url), "utf8");
});
after(() => market.close());

const has = (program: string): boolean => {
  try {
    execFileSync("which", [program], { env: { PATH: PATHS } });
    return true;
  } catch {
    return false;
  }
};
const PATHS = `${process.env["PATH"]}:/usr/sbin`;
const without = (program: string) => (has(program) ? false : `${program} is not installed`);

/** A configuration of the guide, with this test's addresses. */
function configured(language: string, changes: [string, string][]): string {
  const [, text] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(guide) ?? [];
  assert.ok(text, `the guide has a configuration in ${language}`);
  return changes.reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from), `${from} in\n${changed}`);
    return changed.replaceAll(from, to);
  }, text);
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const is = await Promise.race([once(socket, "connect"), once(socket, "error")]).then(
    () => true,
    () => false,
  );
  socket.destroy();
  return is;
}

/** Runs a program with a configuration file until the test ends; resolves when it listens. */
async function run(
  t: TestContext,
  program: string,
  config: string,
  port: number,
  args: (file: string) => string[],
) {
  const folder = await mkdtemp(join(tmpdir(), "stoa-intermediary-"));
  await chmod(folder, 0o777);
  const file = join(folder, "config");
  await writeFile(file, config.replaceAll("FOLDER", folder));
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child: ChildProcess = spawn(program, args(file), {
    ...user,
    cwd: folder,
    env: { PATH: PATHS },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (bytes) => (output += bytes));
  const ended = once(child, "exit");
  t.after(async () => {
    // SIGKILL would leave nginx's worker processes.
    child.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  for (let tries = 0; !(await isListening(port)); tries++) {
    assert.ok(child.exitCode === null && tries < 400, `${program} does not listen:\n${output}`);
    await sleep(25);
  }
}

/** Forwards a TCP port to PostgreSQL's socket, which only its user can open. */
async function openDatabasePort(t: TestContext): Promise<number> {
  const { searchParams } = new URL(market.target);
  const path = `${searchParams.get("host")}/.s.PGSQL.${searchParams.get("port")}`;
  const server = createServer((near) => {
    const far = connect(path);
    near.pipe(far).pipe(near);
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function startPooler(t: TestContext): Promise<string> {
  const [databasePort, port] = [await openDatabasePort(t), await freePort()];
  const name = new URL(market.target).pathname.slice(1);
  const config = configured("ini", [
    [
      "stoa = host=127.0.0.1 port=5432 dbname=stoa",
      `${name} = host=127.0.0.1 port=${databasePort} dbname=${name} user=postgres`,
    ],
    ["listen_port = 6432", `listen_port = ${port}\nunix_socket_dir =`],
    ["auth_type = scram-sha-256", "auth_type = any"],
    ["auth_file = /etc/pgbouncer/userlist.txt\n", ""],
  ]);
  await run(t, "pgbouncer", config, port, (file) => [file]);
  return `postgres://postgres@127.0.0.1:${port}/${name}`;
}

async function startNode(
  t: TestContext,
  connection: { target: string; direct?: string },
  roles = { api: true, worker: false },
) {
  const logs: string[] = [];
  const node: Service = await startService(
    { ...market.service.ctx.config, roles },
    { ...connection, maxConnections: 4 },
    {
      now: () => market.clock.now,
      log: createLog("warn", { write: (line: string) => void logs.push(line) }),
    },
  );
  t.after(() => node.close());
  return { node, logs };
}

test("PgBouncer in transaction mode: without a direct URL nothing is cached, products are bought, and a revoked key ends at once", {
  skip: without("pgbouncer"),
}, async (t) => {
  const target = await startPooler(t);
  const { node, logs } = await startNode(t, { target }, { api: true, worker: true });
  const readiness = async () =>
    (await fetch(`${node.origin}/readyz`)).json() as Promise<{ status: string; warnings: string[] }>;
  await until("it warns", async () => (await readiness()).warnings.length > 0);
  const { status, warnings } = await readiness();
  assert.equal(status, "ready");
  assert.match(warnings.join(), /Nothing is cached: DATABASE_URL leads through a connection pooler/);
  assert.ok(logs.some((line) => line.includes("Nothing is cached")));
  const member = await market.createUser();
  const behind = clientOf(node.origin, member.key);
  // Named statements, which may run on any connection of the pooler.
  const replies = await Promise.all(Array.from({ length: 40 }, () => behind.get("/v1/products?limit=5")));
  assert.deepEqual([...new Set(replies.map((reply) => reply.status))], [200]);
  // Pipelined transactions; the last ones repeat their statements often enough to be prepared without a pooler.
  const seller = await market.createUser();
  const products = await Promise.all([1, 2, 3].map((n) => createProduct(seller, { title: `Bought ${n}` })));
  for (const productId of products) await buyProduct(behind, productId);
  const others = await Promise.all([1, 2, 3, 4].map(() => market.createUser()));
  const purchases = others.map(({ key }) => buyProduct(clientOf(node.origin, key), products[0] ?? ""));
  assert.equal(new Set(await Promise.all(purchases)).size, others.length);
  assert.equal(node.ctx.notifications.areCurrent(), false);
  await market.query("delete from api_keys where user_id = $1", [member.userId]);
  assert.equal((await behind.get("/v1/products?limit=5")).status, 401);
});

test("PgBouncer with DATABASE_DIRECT_URL: notifications arrive, and answers are cached", {
  skip: without("pgbouncer"),
}, async (t) => {
  const { node } = await startNode(t, { target: await startPooler(t), direct: market.target });
  for (let tries = 0; !node.ctx.notifications.areCurrent(); tries++) {
    assert.ok(tries < 200, String(node.ctx.notifications.problem));
    await sleep(25);
  }
  assert.equal(node.ctx.notifications.problem, null);
});

for (const [program, language, args] of [
  ["nginx", "nginx", (file: string) => ["-p", "FOLDER", "-c", file, "-e", "stderr"]],
  ["haproxy", "haproxy", (file: string) => ["-db", "-f", file]],
] as const)
  test(`${program}: one node drains and stops: no request fails`, { skip: without(program) }, async (t) => {
    const drained = Promise.withResolvers<void>();
    t.after(() => drained.resolve());
    const [first, second] = [
      await startNode(t, { target: market.target }),
      await openDraining(t, drained.promise),
    ];
    const port = await freePort();
    const portOf = ({ origin }: Service) => new URL(origin).port;
    const changes: [string, string][] = [
      ["127.0.0.1:4000", `127.0.0.1:${portOf(first.node)}`],
      ["127.0.0.1:4001", `127.0.0.1:${portOf(second)}`],
      ["127.0.0.1:8080", `127.0.0.1:${port}`],
    ];
    const text = configured(
      language,
      program === "haproxy" ? [...changes, ["inter 1s", "inter 100ms"]] : changes,
    );
    const isNginx = program === "nginx";
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path FOLDER/${name};`,
    );
    const config = isNginx
      ? `daemon off; pid FOLDER/pid; error_log stderr; events {} http { access_log off; ${paths.join(" ")}\n${text}}`
      : text;
    await run(t, program, config, port, (file) =>
      args(file).map((arg) => arg.replace("FOLDER", join(file, ".."))),
    );
    const statuses: number[] = [];
    const ask = async () =>
      statuses.push(
        (await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(3_000) })).status,
      );
    let reached = 0;
    second.app.server.on("request", ({ url }) => {
      if (url === "/healthz") reached++;
    });
    /** Asks until ten requests in turn have reached the other node. */
    const askUntilAlone = async () => {
      for (let alone = 0; alone < 10; ) {
        const before = reached;
        await ask();
        alone = reached === before ? alone + 1 : 0;
      }
    };
    for (let round = 0; round < 10; round++) await ask();
    assert.ok(reached > 0);
    const ending = second.close();
    const until = performance.now() + 500;
    while (performance.now() < until) await ask();
    // HAProxy learns of the end from its checks, which may be late on a busy machine.
    if (!isNginx) await askUntilAlone();
    drained.resolve();
    await Promise.all([
      ending,
      (async () => {
        for (let round = 0; round < 40; round++) await ask();
      })(),
    ]);
    assert.deepEqual([...new Set(statuses)], [200]);
  });

async function openDraining(t: TestContext, drained: Promise<void>): Promise<Service> {
  const node = await startService(
    market.service.ctx.config,
    { target: market.target, maxConnections: 4 },
    { now: () => market.clock.now, log: createLog("silent"), drain: () => drained },
  );
  let closing: Promise<void> | undefined;
  const { close } = node;
  node.close = () => (closing ??= close());
  t.after(() => node.close());
  return node;
}
