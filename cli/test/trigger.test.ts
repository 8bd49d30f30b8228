import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { startHttpProxy } from "./http-proxy.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

const DAY_MS = 86_400_000;

let market: Market;
let seller: Client;
let stoa: CommandLine;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: true } }, graceMs: 0 });
  seller = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: seller.key });
});
after(async () => {
  await stoa.remove();
  await market.close();
});

const trigger = (type: string) => stoa.run(["trigger", type, "--json"]);

async function assertTriggered(type: string) {
  const { code, stdout, stderr } = await trigger(type);
  assert.equal(code, 0, stderr);
  const event = JSON.parse(stdout);
  assert.equal(event.type, type);
  const stored = await seller.get(`/v1/events/${event.id}`);
  assert.deepEqual(stored.body.data, event);
  return { event, stderr };
}

suite("stoa trigger", () => {
  for (const type of [
    "product.published",
    "product.updated",
    "product.unpublished",
    "evaluation.completed",
    "evaluation.regressed",
    "test",
  ])
    test(`${type}: happens, and leaves neither a product nor an endpoint`, async () => {
      await assertTriggered(type);
      const left = [await seller.get("/v1/products?author=me"), await seller.get("/v1/webhooks")];
      assert.deepEqual(
        left.map(({ body }) => body.data),
        [[], []],
      );
    });

  for (const [type, at] of [
    ["product.published", "POST /v1/products"],
    ["product.unpublished", /^POST \/v1\/products\/\w+\/publish$/],
    ["test", "POST /v1/webhooks"],
    ["purchase.completed", "POST /v1/purchases"],
  ] as const)
    test(`${type}, Ctrl-C at ${at}: leaves no product, endpoint or account`, async () => {
      const interrupt = (line: string) => {
        if (typeof at === "string" ? line === at : at.test(line)) command.child.kill("SIGINT");
      };
      const proxy = await startHttpProxy(market.origin, interrupt);
      const command = stoa.start(["trigger", type], { env: { STOA_BASE_URL: `${proxy.origin}/v1` } });
      const { code, stderr } = await command.ended;
      await proxy.close();
      assert.equal(code, 130, stderr);
      const left = [await seller.get("/v1/products?author=me"), await seller.get("/v1/webhooks")];
      assert.deepEqual(
        left.map(({ body }) => body.data),
        [[], []],
      );
      const { rows } = await market.query("select email from users where email like 'trigger-%'");
      assert.deepEqual(rows, []);
    });

  test("purchase.completed, review.created, purchase.refunded: by a second person, also twice", async () => {
    await assertTriggered("purchase.completed");
    const { event } = await assertTriggered("review.created");
    assert.equal(event.data.review.rating, 5);
    const first = await assertTriggered("purchase.refunded");
    const second = await assertTriggered("purchase.refunded");
    assert.notEqual(first.event.id, second.event.id);
  });

  test("payout.completed: an error while the earnings can be refunded, then it happens", async () => {
    const early = await trigger("payout.completed");
    assert.equal(early.code, 2);
    assert.match(early.stderr, /^error: No payout can complete now: .*\nfix: .*stoa payouts balance/);
    for (let n = 0; n < 6; n++) await assertTriggered("purchase.completed");
    market.clock.forward(60 * DAY_MS);
    await assertTriggered("payout.completed");
  });

  test("user.subscription.updated: upgrades, and plans the way back", async () => {
    market.clock.forward(60_000);
    const { event, stderr } = await assertTriggered("user.subscription.updated");
    assert.equal(event.data.subscription.newPlan, "pro");
    assert.match(stderr, /Your plan is pro until \d{4}-\d\d-\d\d/);
    const { body } = await seller.get("/v1/account/subscription");
    assert.equal(body.data.scheduled.plan, "free");
  });

  test("--list, an unknown type, and none", async () => {
    const [list, unknown, none] = await Promise.all([
      stoa.run(["trigger", "--list", "--json", "--fields", "type"]),
      trigger("toString"),
      stoa.run(["trigger"]),
    ]);
    const types = JSON.parse(list.stdout).map(({ type }: { type: string }) => type);
    assert.equal(types.length, 11);
    assert.deepEqual([unknown.code, none.code], [1, 1]);
    assert.match(unknown.stderr, /no type of event.*\nfix: stoa trigger --list/);
  });
});

test("a service without payment methods of a test environment: refused before anything is sent", async () => {
  const payments = { ...market.service.ctx.integrations.payments, sharedMethods: [] };
  const live = await openMarket({ payments });
  const { key } = await live.createUser();
  const { code, stderr } = await stoa.run(["trigger", "product.published"], {
    env: { STOA_API_KEY: key, STOA_BASE_URL: `${live.origin}/v1` },
  });
  assert.equal(code, 2);
  assert.match(stderr, /^error: This service is not a test environment/);
  const { rows } = await live.query("select count(*)::int as products from products");
  assert.equal(rows[0].products, 0);
  await live.close();
});
