import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { RUN_LEASE_MS } from "../../execution/prompt-runs/run-record.ts";
import { noPayments } from "../../integrations/payments/no-payments.ts";
import type { Payments } from "../../integrations/payments/payments.ts";
import { DEAD_AFTER_SECONDS, deleteExpiredIdempotencyKeys, LEASE_SECONDS } from "./idempotency.ts";

const HOUR = 3_600_000;
let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

const countOf = async (table: string, where = "true") => {
  const { rows } = await market.query(`select count(*)::int as count from ${table} where ${where}`);
  return rows[0].count as number;
};

/** The repeat has the same bytes, and a header that marks it. */
function assertReplay(reply: Reply, first: Reply) {
  assert.equal(reply.headers.get("idempotent-replayed"), "true", reply.text);
  assert.equal(first.headers.get("idempotent-replayed"), null);
  assert.equal(reply.status, first.status);
  assert.equal(reply.text, first.text);
  assert.equal(reply.headers.get("content-type"), first.headers.get("content-type"));
}

suite("a repeat with the same Idempotency-Key", () => {
  test("and body: the first answer, no second effect", async () => {
    const before = await countOf("products");
    const key = { "idempotency-key": "create-1" };
    const first = await seller.post("/v1/products", haiku, key);
    assert.equal(first.status, 201);
    assertReplay(await seller.post("/v1/products", haiku, key), first);
    assertReplay(await seller.post("/v1/products", haiku, key), first);
    assert.equal(await countOf("products"), before + 1);
  });

  test("and another body: 422, no effect", async () => {
    const key = { "idempotency-key": "create-2" };
    const first = await seller.post("/v1/products", haiku, key);
    const before = await countOf("products");
    const other = { ...haiku, title: "Another haiku" };
    assertError(await seller.post("/v1/products", other, key), 422, "IDEMPOTENCY_KEY_REUSED");
    assert.equal(await countOf("products"), before);
    assertReplay(await seller.post("/v1/products", haiku, key), first);
  });

  test("without a body: works for actions, each path separately", async () => {
    const key = { "idempotency-key": "go" };
    const [one, two] = [await createDraft(seller), await createDraft(seller)];
    const first = await seller.post(`/v1/products/${one}/publish`, undefined, key);
    assert.equal(first.status, 200, first.text);
    assertReplay(await seller.post(`/v1/products/${one}/publish`, undefined, key), first);
    const second = await seller.post(`/v1/products/${two}/publish`, undefined, key);
    assert.equal(second.body.data.id, two, "another path is another request");
    const third = await seller.post(`/v1/products/${one}/unpublish`, undefined, key);
    assert.equal(third.body.data.status, "unpublished");
  });

  test("by another caller: a new request", async () => {
    const key = { "idempotency-key": "shared" };
    const other = await market.createUser();
    const mine = await seller.post("/v1/products", haiku, key);
    const theirs = await other.post("/v1/products", { ...haiku, title: "Theirs" }, key);
    assert.equal(theirs.status, 201, theirs.text);
    assert.equal(theirs.headers.get("idempotent-replayed"), null);
    assert.notEqual(theirs.body.data.id, mine.body.data.id);
  });

  test("by another key of the same account: the same request", async () => {
    const key = { "idempotency-key": "account" };
    const { createKeyAsOperator: createKey } = await import("../../accounts/api-keys/keys.ts");
    const second = await createKey(market.service.ctx, {
      userId: seller.userId,
      name: "second",
      permissions: ["products:write"],
    });
    const first = await seller.post("/v1/products", haiku, key);
    assertReplay(await market.as(second.key).post("/v1/products", haiku, key), first);
  });

  test("for 24 hours; later a new request", async () => {
    const key = { "idempotency-key": "a day" };
    const first = await seller.post("/v1/products", haiku, key);
    market.clock.forward(24 * HOUR);
    assertReplay(await seller.post("/v1/products", haiku, key), first);
    market.clock.forward(1_000);
    const second = await seller.post("/v1/products", { ...haiku, title: "A day later" }, key);
    assert.equal(second.status, 201, second.text);
    assert.notEqual(second.body.data.id, first.body.data.id);
  });

  test("after a declined payment: the same answer, no second payment", async () => {
    const productId = await createProduct(seller);
    const buyer = await market.createUser();
    const key = { "idempotency-key": "declined" };
    const input = { productId, paymentMethodId: "pm_test_declined" };
    const first = await buyer.post("/v1/purchases", input, key);
    assertError(first, 402, "INSUFFICIENT_FUNDS");
    assertReplay(await buyer.post("/v1/purchases", input, key), first);
    assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 1);
  });

  test("after a provider error: the same answer", async () => {
    const run = {
      productId: await createProduct(seller),
      apiKeyId: "sandbox",
      variables: { topic: "rain" },
      options: { model: "sandbox-filter" },
    };
    const key = { "idempotency-key": "filtered" };
    const first = await seller.post("/v1/ai/execute", run, key);
    assertError(first, 422, "CONTENT_FILTERED");
    assertReplay(await seller.post("/v1/ai/execute", run, key), first);
    assert.equal((await seller.get("/v1/ai/executions?type=prompt")).body.meta.total, 1);
  });

  test("has its own request id in the header, and the first one's in the body", async () => {
    const headers = (id: string) => ({ "idempotency-key": "ids", "x-request-id": id });
    await seller.post("/v1/products", haiku, headers("first"));
    const reply = await seller.post("/v1/products", haiku, headers("second"));
    assert.equal(reply.headers.get("x-request-id"), "second");
    assert.equal(reply.body.meta.request_id, "first");
  });
});

suite("a refusal before any effect is not stored", () => {
  test("400: the corrected request may use the same key", async () => {
    const key = { "idempotency-key": "mended" };
    assertError(await seller.post("/v1/products", { ...haiku, price: -1 }, key), 400, "INVALID_REQUEST");
    assertError(
      await seller.request("POST", "/v1/products", {
        body: "{",
        headers: { ...key, "content-type": "application/json" },
      }),
      400,
      "INVALID_REQUEST",
    );
    assert.equal((await seller.post("/v1/products", haiku, key)).status, 201);
  });

  test("404: succeeds when the object exists", async () => {
    const key = { "idempotency-key": "early" };
    const productId = await createDraft(seller);
    const buyer = await market.createUser();
    assertError(await buyer.post("/v1/purchases", { productId }, key), 404, "PRODUCT_NOT_FOUND");
    await seller.post(`/v1/products/${productId}/publish`);
    assert.equal((await buyer.post("/v1/purchases", { productId }, key)).status, 201);
  });

  test("403: succeeds after the purchase", async () => {
    const key = { "idempotency-key": "unbought" };
    const productId = await createProduct(seller);
    const buyer = await market.createUser();
    const run = { productId, apiKeyId: "sandbox", variables: { topic: "rain" } };
    assertError(await buyer.post("/v1/ai/execute", run, key), 403, "UNAUTHORIZED");
    await buyProduct(buyer, productId);
    assert.equal((await buyer.post("/v1/ai/execute", run, key)).status, 200);
  });

  test("409 and 422: succeed when possible", async () => {
    const key = { "idempotency-key": "incomplete" };
    const productId = await createDraft(seller, { description: "" });
    const publish = () => seller.post(`/v1/products/${productId}/publish`, undefined, key);
    assertError(await publish(), 422, "VALIDATION_ERROR", "description");
    await seller.patch(`/v1/products/${productId}`, { description: "Three lines." });
    assert.equal((await publish()).status, 200);
  });

  test("no row remains", async () => {
    const before = await countOf("idempotency_keys");
    await seller.post("/v1/products", {}, { "idempotency-key": "nothing" });
    await market.as(null).post("/v1/products", haiku, { "idempotency-key": "nobody" });
    assert.equal(await countOf("idempotency_keys"), before);
  });
});

suite("the Idempotency-Key header", () => {
  for (const [words, key] of [
    ["is empty", ""],
    ["is longer than 255 characters", "k".repeat(256)],
    ["holds other than printable ASCII", "clé"],
  ] as const) {
    test(`refused when it ${words}`, async () => {
      const before = await countOf("products");
      const reply = await seller.post("/v1/products", haiku, { "idempotency-key": key });
      assertError(reply, 400, "INVALID_REQUEST", "Idempotency-Key");
      assert.equal(await countOf("products"), before);
    });
  }

  test("255 characters with the longest path: accepted", async () => {
    const long = Array.from({ length: 255 }, (_, index) =>
      String.fromCharCode(33 + ((index * 57) % 93)),
    ).join("");
    const key = { "idempotency-key": long };
    const first = await seller.post("/v1/products", haiku, key);
    assert.equal(first.status, 201, first.text);
    assertReplay(await seller.post("/v1/products", haiku, key), first);
    // Random characters, since PostgreSQL could compress repeated ones.
    const id = createHash("shake256", { outputLength: 9_000 }).update("long").digest("base64url");
    assertError(await seller.post(`/v1/products/${id}/publish`, undefined, key), 404, "PRODUCT_NOT_FOUND");
  });

  test("methods other than POST: ignored", async () => {
    const id = await createDraft(seller);
    const key = { "idempotency-key": "patch" };
    await seller.patch(`/v1/products/${id}`, { title: "One" }, key);
    const reply = await seller.patch(`/v1/products/${id}`, { title: "Two" }, key);
    assert.equal(reply.body.data.title, "Two");
    assert.equal(reply.headers.get("idempotent-replayed"), null);
  });
});

suite("the stored answer", () => {
  test("sealed: neither answer nor request is readable in the database", async () => {
    const productId = await createProduct(seller, { content: "The marker is PLUMBLOSSOM about {{topic}}." });
    const variables = { topic: "QUINCETREE" };
    const options = { model: "sandbox-echo" };
    const run = { productId, apiKeyId: "sandbox", variables, options };
    const reply = await seller.post("/v1/ai/execute", run, { "idempotency-key": "sealed" });
    assert.match(reply.body.data.output, /PLUMBLOSSOM.*QUINCETREE/);
    const { rows } = await market.query("select * from idempotency_keys where key = 'sealed'");
    assert.equal(rows.length, 1);
    const { sealed_body, request_digest } = rows[0];
    const parts = sealed_body
      .split(".")
      .map((part: string) => Buffer.from(part, "base64url").toString("latin1"));
    const row = [JSON.stringify(rows[0]), request_digest.toString("latin1"), ...parts].join("\n");
    for (const plain of ["PLUMBLOSSOM", "QUINCETREE", "success", reply.body.data.executionId]) {
      assert.ok(!row.includes(plain), `${plain} can be read`);
    }
  });

  test("opens in its own row only", async () => {
    const other = { ...haiku, title: "Another" };
    const mine = await seller.post("/v1/products", haiku, { "idempotency-key": "row-1" });
    await seller.post("/v1/products", other, { "idempotency-key": "row-2" });
    await market.query(
      "update idempotency_keys set sealed_body = (select sealed_body from idempotency_keys where key = 'row-1') where key = 'row-2'",
    );
    const moved = await seller.post("/v1/products", other, { "idempotency-key": "row-2" });
    assertError(moved, 500, "INTERNAL_ERROR");
    assert.ok(!moved.text.includes(mine.body.data.id));
  });

  test("deleted by the clean-up after its 24 hours", async () => {
    await seller.post("/v1/products", haiku, { "idempotency-key": "old" });
    market.clock.forward(24 * HOUR);
    await deleteExpiredIdempotencyKeys(market.service.ctx);
    assert.equal(await countOf("idempotency_keys", "key = 'old'"), 1);
    market.clock.forward(1);
    await deleteExpiredIdempotencyKeys(market.service.ctx);
    assert.equal(await countOf("idempotency_keys", "key = 'old'"), 0);
  });
});

/** Payments whose charges wait until the test releases them in order. */
function slowPayments() {
  const waiting: (() => void)[] = [];
  const asked: PromiseWithResolvers<void>[] = [];
  const charged: string[] = [];
  const outcome = {
    state: "succeeded",
    paymentId: "ch_1",
    method: { brand: "visa", last4: "4242" },
    isRefunded: false,
    feeMinor: null,
  } as const;
  const nth = (index: number) => (asked[index] ??= Promise.withResolvers<void>());
  const payments: Payments = {
    ...noPayments,
    name: "slow",
    charge: async ({ orderId, amountMinor, currency }) => {
      charged.push(orderId);
      const gate = new Promise<void>((resolve) => waiting.push(resolve));
      nth(charged.length - 1).resolve();
      await gate;
      return { ...outcome, amountMinor, currency };
    },
    findCharge: async () => null,
    cancelCharge: async () => null,
    sharedMethods: [{ id: "pm_slow", brand: "visa", last4: "4242" }],
  };
  return {
    payments,
    charged,
    /** Resolves at the charge with this index. */
    asks: (index: number) => nth(index).promise,
    letGo: (index: number) => waiting[index]!(),
  };
}

suite("the first request is still running", () => {
  const slow = slowPayments();
  let slowMarket: Market;
  let author: Client;
  before(async () => {
    slowMarket = await openMarket({ payments: slow.payments });
    author = await slowMarket.createUser();
  });
  after(() => slowMarket.close());

  test("a repeat: 409 with Retry-After; another body: 422", { timeout: 120_000 }, async () => {
    const productId = await createProduct(author);
    const buyer = await slowMarket.createUser();
    const key = { "idempotency-key": "parallel" };
    const running = buyer.post("/v1/purchases", { productId }, key);
    await slow.asks(0);
    const repeat = await buyer.post("/v1/purchases", { productId }, key);
    assertError(repeat, 409, "IDEMPOTENCY_IN_PROGRESS");
    assert.match(repeat.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    const other = await buyer.post("/v1/purchases", { productId, expectedPrice: 4.99 }, key);
    assertError(other, 422, "IDEMPOTENCY_KEY_REUSED");
    slow.letGo(0);
    const first = await running;
    assert.equal(first.status, 201, first.text);
    assertReplay(await buyer.post("/v1/purchases", { productId }, key), first);
    assert.equal(slow.charged.length, 1);
  });

  test("its process dies: after the lease a repeat continues its order, and its late answer is not stored", {
    timeout: 120_000,
  }, async () => {
    const productId = await createProduct(author);
    const buyer = await slowMarket.createUser();
    const key = { "idempotency-key": "takeover" };
    const lost = buyer.post("/v1/purchases", { productId }, key);
    await slow.asks(1);
    slowMarket.clock.forward(LEASE_SECONDS * 1000);
    assertError(await buyer.post("/v1/purchases", { productId }, key), 409, "IDEMPOTENCY_IN_PROGRESS");
    slowMarket.clock.forward(1);
    const other = await buyer.post("/v1/purchases", { productId, expectedPrice: 4.99 }, key);
    assertError(other, 422, "IDEMPOTENCY_KEY_REUSED");
    const taken = buyer.post("/v1/purchases", { productId }, key);
    await slow.asks(2);
    slow.letGo(2);
    const answer = await taken;
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get("idempotent-replayed"), "true");
    slow.letGo(1);
    const late = await lost;
    assert.notEqual(late.body.meta.request_id, answer.body.meta.request_id);
    assert.equal((await buyer.post("/v1/purchases", { productId }, key)).text, answer.text);
    assert.equal(slow.charged[1], slow.charged[2], "the provider was asked twice for one order");
    assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 1);
  });

  test("its session lock is lost: a repeat waits until the lease expires too", {
    timeout: 120_000,
  }, async () => {
    const productId = await createProduct(author);
    const buyer = await slowMarket.createUser();
    const buy = () => buyer.post("/v1/purchases", { productId }, { "idempotency-key": "lost lock" });
    const lost = buy();
    await slow.asks(3);
    await slowMarket.query("update idempotency_keys set process_lock = 0 where key = 'lost lock'");
    slowMarket.clock.forward(DEAD_AFTER_SECONDS * 1000);
    assertError(await buy(), 409, "IDEMPOTENCY_IN_PROGRESS");
    slowMarket.clock.forward(1);
    const taken = buy();
    await slow.asks(4);
    for (const charge of [3, 4]) slow.letGo(charge);
    assert.equal((await taken).status, 201);
    await lost;
    assert.equal(slow.charged[3], slow.charged[4], "the provider was asked twice for one order");
  });
});

test("the database is down at the end of a run: a repeat waits, and gets the run's output", async () => {
  const productId = await createProduct(seller);
  const run = { productId, apiKeyId: "sandbox", variables: { topic: "rain" } };
  const ask = () => seller.post("/v1/ai/execute", run, { "idempotency-key": "held end" });
  await market.query(`
    create function refuse_ends() returns trigger language plpgsql as
      $$ begin raise exception 'going down' using errcode = '57P01'; end $$;
    create trigger refuse_ends before update on executions
      for each row when (old.status = 'running' and new.status <> 'running') execute function refuse_ends()`);
  const first = await ask();
  assert.equal(first.status, 200, first.text);
  // As if this answer was not stored, and the database was unavailable for longer than the lease.
  await market.query(
    "update idempotency_keys set status = null, sealed_body = null, lease_until = '-infinity' where key = 'held end'",
  );
  market.clock.forward(RUN_LEASE_MS + 1);
  assertError(await ask(), 409, "IDEMPOTENCY_IN_PROGRESS");
  await market.query("drop function refuse_ends cascade");
  const reply = await becomes(ask, ({ status }) => status !== 409);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.data.output, first.body.data.output);
});

test("parallel purchases: one order; each gets its answer or 409", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const key = { "idempotency-key": "parallel" };
  const buy = () => buyer.post("/v1/purchases", { productId }, key);
  const replies = await Promise.all(Array.from({ length: runs(20) }, buy));
  const done = replies.filter(({ status }) => status === 201);
  for (const reply of replies) if (reply.status !== 201) assertError(reply, 409, "IDEMPOTENCY_IN_PROGRESS");
  assert.equal(done.filter(({ headers }) => !headers.has("idempotent-replayed")).length, 1);
  assert.equal(new Set([...done, await buy()].map(({ text }) => text)).size, 1);
  const { rows } = await market.query("select status from orders where buyer_id = $1", [buyer.userId]);
  assert.deepEqual(rows, [{ status: "completed" }]);
  assert.equal(await countOf("fake_provider.charges", `order_id = '${done[0]!.body.data.orderId}'`), 1);
});
