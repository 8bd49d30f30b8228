import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { unwrap } from "../../sdk/src/webhooks.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { startEventReceiver } from "./event-receiver.ts";
import {
  assertInOrder,
  listEventIds,
  listenThroughDisconnects,
  publishEvents,
} from "./listen-through-disconnects.ts";
import { openTerminal, skipWithoutTerminal } from "./pseudo-terminal.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

interface Setting {
  owner: Client;
  stoa: CommandLine;
  receiver: Awaited<ReturnType<typeof startEventReceiver>>;
}

async function withReceiver(work: (setting: Setting) => Promise<void>): Promise<void> {
  const owner = await market.createUser();
  const stoa = await openCommandLine({ origin: market.origin, key: owner.key });
  const receiver = await startEventReceiver();
  try {
    await work({ owner, stoa, receiver });
  } finally {
    await Promise.all([stoa.remove(), receiver.close()]);
  }
}

const publish = (owner: Client, count: number) => publishEvents(market.service, owner, count);

suite("stoa listen --forward-to", () => {
  test("events arrive signed with the secret it prints; after Ctrl-C the next start goes on", () =>
    withReceiver(async ({ owner, stoa, receiver }) => {
      const args = ["listen", "--forward-to", receiver.address];
      const first = stoa.start(args);
      await until("it listens", () => first.output.stderr.includes("Waiting"));
      await publish(owner, 2);
      await until("two lines", () => first.output.stdout.split("\n").length === 3);
      first.child.kill("SIGINT");
      const { code, stdout, stderr } = await first.ended;
      const [id] = receiver.ids();
      assert.equal(code, 130);
      assert.doesNotMatch(stderr, /broke off/);
      assert.match(stdout, new RegExp(`^\\d\\d:\\d\\d:\\d\\d\ttest\t${id}\t→ 200\t\\d+ ms\n`));
      const secret = /whsec_\S+/.exec(stderr)![0];
      const [{ body, headers }] = receiver.received as [(typeof receiver.received)[0]];
      assert.equal((await unwrap(body, headers, secret)).id, id);
      assert.equal(headers["content-type"], "application/json");

      await publish(owner, 3);
      const second = stoa.start([...args, "--json"]);
      await until("all events", () => receiver.received.length === 5);
      await until("all lines", () => second.output.stdout.split("\n").length === 4);
      const twice = await stoa.run(args);
      assert.equal(twice.code, 1);
      assert.match(twice.stderr, /Another stoa listen, process \d+, forwards to .*\nfix: End it/);
      second.child.kill("SIGINT");
      const lines = (await second.ended).stdout.trim().split("\n");
      assert.deepEqual(receiver.ids(), await listEventIds(market, owner));
      const last = JSON.parse(lines[2]!);
      assert.deepEqual([last.id, last.status, last.attempts], [receiver.ids()[4], 200, 1]);
      assert.equal((await stoa.run(["listen", "--print-secret"])).stdout, `${secret}\n`);
      const folder = join(stoa.env["XDG_CONFIG_HOME"]!, "stoa", "listen");
      assert.equal((await stat(join(folder, "default.secret"))).mode & 0o777, 0o600);
    }));

  test("--from-now, --after and --events: choose what arrives", () =>
    withReceiver(async ({ owner, stoa, receiver }) => {
      await publish(owner, 3);
      const [first] = await listEventIds(market, owner);
      const listen = async (count: number, ...options: string[]) => {
        receiver.received.length = 0;
        const command = stoa.start(["listen", "--forward-to", receiver.address, ...options]);
        await until("it listens", () => command.output.stderr.includes("Ctrl-C"));
        if (options.includes("--from-now")) await publish(owner, 1);
        await until("the events arrive", () => receiver.received.length >= count);
        command.child.kill("SIGINT");
        await command.ended;
        return receiver.ids();
      };
      const all = await listEventIds(market, owner);
      assert.deepEqual(await listen(2, "--after", first!, "--events", "test"), all.slice(1));
      assert.deepEqual(await listen(1, "--from-now"), (await listEventIds(market, owner)).slice(3));
    }));

  test("a receiver that is down gets the events when it is back, each once", () =>
    withReceiver(async ({ owner, stoa, receiver }) => {
      await receiver.close();
      const command = stoa.start(["listen", "--forward-to", receiver.address]);
      await until("it listens", () => command.output.stderr.includes("Waiting"));
      await publish(owner, 2);
      await until("it tries again", () => /does not respond \(ECONNREFUSED\)/.test(command.output.stderr));
      const back = await startEventReceiver(Number(receiver.address.split(":")[1]));
      await until("both arrive", () => back.received.length === 2);
      assert.deepEqual(back.ids(), await listEventIds(market, owner));
      command.child.kill("SIGINT");
      await command.ended;
      await back.close();
    }).catch((error) => {
      if (error.code !== "ERR_SERVER_NOT_RUNNING") throw error;
    }));

  test("an event that a receiver refuses or does not take: named with the command that sends it again", () =>
    withReceiver(async ({ owner, stoa, receiver }) => {
      receiver.status = 500;
      const command = stoa.start(["listen", "--forward-to", receiver.address, "--retry-seconds", "0"]);
      await until("it listens", () => command.output.stderr.includes("Waiting"));
      await publish(owner, 1);
      await until("it reports", () => command.output.stderr.includes("Send it again"));
      command.child.kill("SIGINT");
      const { stdout, stderr } = await command.ended;
      assert.match(stdout, /→ 500/);
      const again = /stoa (events resend .*)$/m.exec(stderr)![1]!;
      receiver.status = 204;
      const resent = await stoa.run(again.split(" "));
      assert.equal(resent.code, 0, resent.stderr);
      assert.match(resent.stdout, /→ 204/);
      assert.equal(new Set(receiver.ids()).size, 1);
    }));

  test("wrong address, unknown event, foreign machine: says so", () =>
    withReceiver(async ({ stoa, receiver }) => {
      const [wrong, unknown] = await Promise.all([
        stoa.start(["listen", "--forward-to", "ftp://example.com"]).ended,
        stoa.start(["listen", "--forward-to", receiver.address, "--after", "evt_00000000000000000000000001"])
          .ended,
      ]);
      assert.deepEqual([wrong.code, unknown.code], [1, 2]);
      assert.match(wrong.stderr, /no address of a receiver\nfix: /);
      assert.match(unknown.stderr, /older than 30 days, or.*\nfix: .*--from-now/);
      const foreign = stoa.start(["listen", "--forward-to", "http://192.0.2.1/"]);
      await until("it names the machine", () =>
        foreign.output.stderr.includes("192.0.2.1 is not this machine"),
      );
      foreign.child.kill("SIGINT");
      assert.equal((await foreign.ended).code, 130);
    }));
});

test("stoa listen while the service is away: says so, and goes on", () =>
  withReceiver(async ({ owner, receiver }) => {
    const proxy = await startCuttingProxy(market.origin);
    const stoa = await openCommandLine({ origin: proxy.origin, key: owner.key });
    const command = stoa.start(["listen", "--forward-to", receiver.address]);
    await publish(owner, 1);
    await until("it listens", () => command.output.stderr.includes("Waiting"));
    proxy.moveTo("http://127.0.0.1:9");
    proxy.cut();
    await until("it says so", () => command.output.stderr.includes("broke off. Reconnecting"));
    proxy.moveTo(market.origin);
    await publish(owner, 1);
    const [, next] = await listEventIds(market, owner);
    await until("the next event", () => receiver.ids().includes(next!));
    command.child.kill("SIGINT");
    await command.ended;
    await Promise.all([proxy.close(), stoa.remove()]);
  }));

test("stoa listen without --forward-to: prints the events", () =>
  withReceiver(async ({ owner, stoa }) => {
    const command = stoa.start(["listen", "--json", "--fields", "type,data.message"]);
    await until("it listens", () => command.output.stderr.includes("Waiting"));
    await publish(owner, 1);
    await until("a line", () => command.output.stdout.includes("\n"));
    command.child.kill("SIGINT");
    const { stdout } = await command.ended;
    assert.deepEqual(JSON.parse(stdout), { type: "test", "data.message": "Event 0" });
  }));

test("stoa listen in a terminal: a line an event, until Ctrl-C", { skip: skipWithoutTerminal }, () =>
  withReceiver(async ({ owner, stoa, receiver }) => {
    const terminal = openTerminal(stoa, ["listen", "--forward-to", receiver.address]);
    await terminal.sees("Waiting for events");
    await publish(owner, 1);
    await terminal.sees(/^\d\d:\d\d:\d\d {2}test {2}evt_\w+ {2}→ 200 {2}\d+ ms$/m);
    terminal.type("\u0003");
    assert.equal(await terminal.ended, 130);
  }),
);

test("stoa listen through 5 disconnects, a restart of the service and kill -9: all 200 events, in order", async () => {
  assertInOrder(await listenThroughDisconnects({ events: 200, disconnects: 5 }));
});
