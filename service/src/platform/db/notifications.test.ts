import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { inFullRun } from "../../../test/full-size.ts";
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
  await Promise.all(opened.map((notifications) => notifications.close()));
  opened = [];
});
after(() => sender.end());

const send = (payload: string) => sender.query("select pg_notify($1, $2)", [CHANNEL, payload]);

/** A listener with its own clock, which records payloads and clears. */
function open(url = SERVER_URL) {
  const clock = { ms: 0 };
  const payloads: string[] = [];
  const counts = { clears: 0 };
  const notifications = new Notifications({ target: url }, log, () => clock.ms);
  notifications.register({
    on: { [CHANNEL]: (payload) => void payloads.push(payload) },
    clear: () => void counts.clears++,
  });
  opened.push(notifications);
  return { notifications, clock, payloads, counts };
}

async function openAndListen(url?: string) {
  const all = open(url);
  all.notifications.listen();
  await until("it listens", () => all.notifications.areCurrent());
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
  const { notifications, payloads } = await openAndListen();
  for (let round = 0; round < 300; round++) {
    await send(String(round));
    await notifications.catchUp();
    assert.equal(payloads.at(-1), String(round));
  }
  assert.equal(payloads.length, 300);
});

test("catchUp() during a probe: waits for a later one", async () => {
  const { notifications, payloads } = await openAndListen();
  for (let round = 0; round < 50; round++) {
    const waiting = [notifications.catchUp()];
    for (let at = 0; at < 5; at++) {
      await send(`${round}.${at}`);
      waiting.push(notifications.catchUp().then(() => assert.ok(payloads.includes(`${round}.${at}`))));
    }
    await Promise.all(waiting);
  }
});

test("a rollback sends no notification, a commit sends it", async () => {
  const { notifications, payloads } = await openAndListen();
  for (const end of ["rollback", "commit"]) {
    await sender.query("begin");
    await send(end);
    await notifications.catchUp();
    assert.deepEqual(payloads, []);
    await sender.query(end);
  }
  await notifications.catchUp();
  assert.deepEqual(payloads, ["commit"]);
});

test("before listening and after closing: not current, and no call waits", async () => {
  const { notifications } = open();
  assert.equal(notifications.areCurrent(), false);
  await notifications.catchUp();
  notifications.listen();
  await until("it listens", () => notifications.areCurrent());
  await notifications.close();
  assert.equal(notifications.areCurrent(), false);
  await notifications.catchUp();
});

test("current: after a probe, for a second without probes, and again after the next one", async () => {
  const { notifications, clock } = await openAndListen();
  for (let step = 0; step < 20; step++) {
    clock.ms += 300;
    assert.ok(notifications.areCurrent(), `after ${clock.ms} ms`);
    await notifications.catchUp();
  }
  clock.ms += 1_000;
  assert.ok(notifications.areCurrent());
  await notifications.catchUp();
  clock.ms += 1_001;
  assert.ok(!notifications.areCurrent(), "it could have missed something since");
  await until("asked, it asked PostgreSQL", () => notifications.areCurrent());
});

test(
  "a silent connection: current for a second, then caches are cleared and a new one is opened",
  inFullRun,
  async () => {
    const line = await openLine();
    try {
      const { notifications, clock, payloads, counts } = await openAndListen(line.url);
      line.silence(true);
      await send("missed");
      assert.ok(notifications.areCurrent(), "the loss is not detected yet");
      clock.ms += 1_001;
      assert.ok(!notifications.areCurrent());
      await notifications.catchUp();
      assert.equal(counts.clears, 1, "no answer came: all is clears before anybody goes on");
      line.silence(false);
      await until("it listens anew", () => notifications.areCurrent());
      await send("payloads");
      await notifications.catchUp();
      assert.deepEqual(payloads, ["payloads"]);
    } finally {
      await line.close();
    }
  },
);

test("a closed connection: caches are cleared at once, and a new one is opened", async () => {
  const line = await openLine();
  try {
    const { notifications, payloads, counts } = await openAndListen(line.url);
    line.hangUp();
    await until("it is noticed", () => counts.clears > 0);
    assert.ok(!notifications.areCurrent());
    await until("it listens anew", () => notifications.areCurrent());
    await send("payloads");
    await notifications.catchUp();
    assert.deepEqual(payloads, ["payloads"]);
  } finally {
    await line.close();
  }
});

test("close(): does not wait for a database that does not answer", async () => {
  const line = await openLine();
  line.silence(true);
  const { notifications } = open(line.url);
  notifications.listen();
  await sleep(50);
  const begun = performance.now();
  await notifications.close();
  assert.ok(performance.now() - begun < 1_000);
  await line.close();
});
