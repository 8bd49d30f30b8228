import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { builtInPlans } from "@stoa/service/core/config/plan-config.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { becomes, until } from "@stoa/service/test/until.ts";
import { startEventReceiver } from "./event-receiver.ts";
import { listEventIds, publishEvents } from "./listen-through-disconnects.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let owner: Client;
let stoa: CommandLine;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: true } }, now: () => new Date() });
  owner = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: owner.key });
});
after(async () => {
  await stoa.remove();
  await market.close();
});

test("stoa events list, get, tail: what is stored and what happens", async () => {
  await publishEvents(market.service, owner, 2);
  const [first, second] = await listEventIds(market, owner);
  const tail = stoa.start(["events", "tail", "--after", first!, "--types", "test"]);
  const [list, get] = await Promise.all([
    stoa.run(["events", "list", "--fields", "id,type"]),
    stoa.run(["events", "get", first!]),
    until("tail has the second", () => tail.output.stdout.includes(second!)),
  ]);
  tail.child.kill("SIGINT");
  assert.equal(list.stdout, `${second}\ttest\n${first}\ttest\n`);
  assert.match(get.stdout, /^ +"message": "Event 0"$/m);
  assert.equal((await tail.ended).stdout.split("\n").length, 2);
});

suite("stoa logs", () => {
  test("requests: those of the past that fit, then each as it happens, once", async () => {
    const caller = await market.createUser();
    const env = { STOA_API_KEY: caller.key };
    const listed = async () => (await caller.get("/v1/request-logs")).body.data.length;
    await caller.get("/v1/account");
    await caller.get("/v1/products/prod_0");
    await becomes(listed, (count) => count === 2);
    const logs = stoa.start(["logs", "--follow", "--interval", "0.05", "--limit", "1"], { env });
    await until("the newest", () => logs.output.stdout.includes("\n"));
    await caller.get("/v1/events");
    await until("the next", () => logs.output.stdout.split("\n").length === 3);
    logs.child.kill("SIGINT");
    const lines = (await logs.ended).stdout.trimEnd().split("\n");
    assert.match(lines[0]!, /\tGET\t\/v1\/products\/prod_0\t404 PRODUCT_NOT_FOUND\t\d+ ms\t/);
    assert.match(lines[1]!, /\tGET\t\/v1\/events\t200\t/);
    const errors = await stoa.run(["logs", "--status", "4xx", "--json", "--fields", "path"], { env });
    assert.equal(errors.stdout, '{"path":"/v1/products/prod_0"}\n');
  });

  test("--deliveries --follow: each attempt of each delivery once, as it happens", async () => {
    const receiver = await startEventReceiver();
    const created = await owner.post("/v1/webhooks", { url: `http://${receiver.address}/` });
    const { id } = created.body.data;
    receiver.status = 500;
    await owner.post(`/v1/webhooks/${id}/test`);
    const attempts = async () => (await owner.get(`/v1/webhooks/${id}/deliveries`)).body.data;
    const [delivery] = await becomes(attempts, ([one]) => one.attempt === 1);
    const logs = stoa.start(["logs", "--deliveries", "--follow", "--interval", "0.05"]);
    await until("the failed attempt", () => logs.output.stdout.includes("\n"));
    receiver.status = 200;
    await owner.post(`/v1/deliveries/${delivery.id}/retry`);
    await until("the second attempt", () => logs.output.stdout.split("\n").length === 3);
    await owner.post(`/v1/webhooks/${id}/test`);
    await until("the next delivery", () => logs.output.stdout.split("\n").length === 4);
    logs.child.kill("SIGINT");
    const { code, stdout, stderr } = await logs.ended;
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t"));
    assert.equal(code, 130, stderr);
    assert.deepEqual(
      lines.map(([, type, endpoint, attempt, status]) => [type, endpoint, attempt, status]),
      [
        ["test", id, "#1", "500"],
        ["test", id, "#2", "200"],
        ["test", id, "#1", "200"],
      ],
    );
    const past = await stoa.run(["logs", "--json", "--endpoint", id, "--limit", "2"]);
    assert.equal(past.stdout.trimEnd().split("\n").length, 2, past.stderr);
    await receiver.close();
  });

  for (const options of [[], ["--deliveries"]])
    test(`--follow ${options.join(" ")} with few requests left: leaves half of them to others`, async () => {
      const quota = [{ requests: 20, seconds: 3_600 }];
      const { plans, ...rest } = builtInPlans;
      const planConfig = { ...rest, plans: { ...plans, free: { ...plans.free, quotas: quota } } };
      const small = await openMarket({ config: { planConfig } });
      const { key } = await small.createUser();
      const logs = stoa.start(["logs", "--follow", "--interval", "0.01", ...options], {
        env: { STOA_API_KEY: key, STOA_BASE_URL: `${small.origin}/v1` },
      });
      await until("it waits", () => /Reading every \d+ s, not every 0\.01 s/.test(logs.output.stderr));
      assert.match(logs.output.stderr, /: \d+ requests of your quota are left for \d+ min\.\n/);
      const { headers } = await small.as(key).get("/v1/account");
      assert.ok(Number(headers.get("x-ratelimit-remaining")) >= 15);
      logs.child.kill("SIGINT");
      assert.equal((await logs.ended).code, 130);
      await small.close();
    });
});
