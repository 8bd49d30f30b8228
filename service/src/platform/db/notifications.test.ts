import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { until } from "../../../test/until.ts";
import { createLog } from "../../core/log.ts";
import { Notifications } from "./notifications.ts";

const SERVER_URL = process.env["STOA_TEST_DATABASE"]!;
const CHANNEL = "Something changed";

const log = createLog("silent");
let sender: pg.Client;
let opened: Notifications[] = [];
before(async () => {
  sender = new pg.Client({ connectionString: SERVER_URL });
  await sender.connect();
});
afterEach(async () => {
  await Promise.all(opened.map((notices) => notices.close()));
  opened = [];
});
after(() => sender.end());

const send = (payload: string) => sender.query("select pg_notify($1, $2)", [CHANNEL, payload]);

/** A listener with its own clock, which records payloads and clears. */
function open(url = SERVER_URL) {
  const clock = { ms: 0 };
  const heard: string[] = [];
  const seen = { forgotten: 0 };
  const notices = new Notifications({ target: url }, log, () => clock.ms);
  notices.register({
    on: { [CHANNEL]: (payload) => void heard.push(payload) },
    clear: () => void seen.forgotten++,
  });
  opened.push(notices);
  return { notices, clock, heard, seen };
}

async function openAndListen(url?: string) {
  const all = open(url);
  all.notices.listen();
  await until("it listens", () => all.notices.areCurrent());
  return all;
}

/** A proxy between a client and PostgreSQL that can stop forwarding or close. */
async function openLine() {
  const target = new URL(SERVER_URL);
  const path = `${target.searchParams.get("host")}/.s.PGSQL.${target.searchParams.get("port")}`;
  const sockets = new Set<Socket>();
  let silent = false;
  const server = createServer((near) => {
    const far = connect(path);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => silent || to.write(bytes));
      from.on("error", () => {});
      from.on("close", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}/postgres`,
    silence: (is: boolean) => {
      silent = is;
    },
    hangUp: () => {
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("catchUp(): resolves after the notifications of all earlier commits", async () => {
  const { notices, heard } = await openAndListen();
  for (let round = 0; round < 300; round++) {
    await send(String(round));
    await notices.catchUp();
    assert.equal(heard.at(-1), String(round));
  }
  assert.equal(heard.length, 300);
});

test("catchUp() during a probe: waits for a later one", async () => {
  const { notices, heard } = await openAndListen();
  for (let round = 0; round < 50; round++) {
    const waiting = [notices.catchUp()];
    for (let at = 0; at < 5; at++) {
      await send(`${round}.${at}`);
      waiting.push(notices.catchUp().then(() => assert.ok(heard.includes(`${round}.${at}`))));
    }
    await Promise.all(waiting);
  }
});

test("a rollback sends no notification, a commit sends it", async () => {
  const { notices, heard } = await openAndListen();
  for (const end of ["rollback", "commit"]) {
    await sender.query("begin");
    await send(end);
    await notices.catchUp();
    assert.deepEqual(heard, []);
    await sender.query(end);
  }
  await notices.catchUp();
  assert.deepEqual(heard, ["commit"]);
});

test("before listening and after closing: not current, and no call waits", async () => {
  const { notices } = open();
  assert.equal(notices.areCurrent(), false);
  await notices.catchUp();
  notices.listen();
  await until("it listens", () => notices.areCurrent());
  await notices.close();
  assert.equal(notices.areCurrent(), false);
  await notices.catchUp();
});

test("current: after a probe, for a second without probes, and again after the next one", async () => {
  const { notices, clock } = await openAndListen();
  for (let step = 0; step < 20; step++) {
    clock.ms += 300;
    assert.ok(notices.areCurrent(), `after ${clock.ms} ms`);
    await notices.catchUp();
  }
  clock.ms += 1_000;
  assert.ok(notices.areCurrent());
  await notices.catchUp();
  clock.ms += 1_001;
  assert.ok(!notices.areCurrent(), "it could have missed something since");
  await until("asked, it asked PostgreSQL", () => notices.areCurrent());
});

test("a silent connection: current for a second, then caches are cleared and a new one is opened", async () => {
  const line = await openLine();
  try {
    const { notices, clock, heard, seen } = await openAndListen(line.url);
    line.silence(true);
    await send("missed");
    assert.ok(notices.areCurrent(), "nobody can know yet");
    clock.ms += 1_001;
    assert.ok(!notices.areCurrent());
    await notices.catchUp();
    assert.equal(seen.forgotten, 1, "no answer came: all is forgotten before anybody goes on");
    line.silence(false);
    await until("it listens anew", () => notices.areCurrent());
    await send("heard");
    await notices.catchUp();
    assert.deepEqual(heard, ["heard"]);
  } finally {
    await line.close();
  }
});

test("a closed connection: caches are cleared at once, and a new one is opened", async () => {
  const line = await openLine();
  try {
    const { notices, heard, seen } = await openAndListen(line.url);
    line.hangUp();
    await until("it is noticed", () => seen.forgotten > 0);
    assert.ok(!notices.areCurrent());
    await until("it listens anew", () => notices.areCurrent());
    await send("heard");
    await notices.catchUp();
    assert.deepEqual(heard, ["heard"]);
  } finally {
    await line.close();
  }
});

test("close(): does not wait for a database that does not answer", async () => {
  const line = await openLine();
  line.silence(true);
  const { notices } = open(line.url);
  notices.listen();
  await sleep(50);
  const begun = performance.now();
  await notices.close();
  assert.ok(performance.now() - begun < 1_000);
  await line.close();
});
