import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import type { PaymentMethod } from "../../integrations/payments/payments.ts";

const PATH = "/v1/payment-methods";
const line: PaymentConnection = { trouble: "none" };
/** Tests without shared methods empty this list. */
const shared: PaymentMethod[] = [];

let provider: FakeProvider;
let market: Market;
let seller: Client;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  const fake = createFakePayments({ origin: provider.origin });
  shared.push(...fake.sharedMethods);
  market = await openMarket({ payments: { ...withConnectionTrouble(line, fake), sharedMethods: shared } });
  seller = await market.createUser({ name: "Seller" });
});
after(async () => {
  await market.close();
  await provider.close();
});

const add = (who: Client, token: string) => who.post(PATH, { token });
const listed = async (who: Client, query = "") => (await who.get(PATH + query)).body.data;
const buy = async (who: Client, input: object = {}) =>
  who.post("/v1/purchases", { productId: await createProduct(seller), ...input });
const defaultsOf = async (who: Client) =>
  (await listed(who, "?limit=100"))
    .filter(({ isDefault }: { isDefault: boolean }) => isDefault)
    .map(({ id }: { id: string }) => id);

/** Stores a method of the user. Returns its id. */
async function createMethod(who: Client, token = "pm_test_ok"): Promise<string> {
  const reply = await add(who, token);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data.id;
}

suite("payment methods", () => {
  test("GET: the shared methods come first, and the first of them is the default", async () => {
    const methods = await listed(await market.createUser());
    assert.deepEqual(methods[0], {
      id: "pm_test_ok",
      brand: "visa",
      last4: "4242",
      isDefault: true,
      createdAt: null,
    });
    assert.deepEqual(
      methods.map(({ id }: { id: string }) => id),
      shared.map(({ id }) => id),
    );
  });

  test("POST: stores a method by the provider's token, and later purchases use it", async () => {
    const buyer = await market.createUser();
    const reply = await add(buyer, "pm_test_declined");
    assert.equal(reply.status, 201);
    assert.partialDeepStrictEqual(reply.body.data, {
      brand: "visa",
      last4: "0002",
      isDefault: false,
      createdAt: market.clock.now.toISOString(),
    });
    const { id } = reply.body.data;
    assert.equal((await listed(buyer))[0].id, id);
    assert.equal(
      assertError(await buy(buyer, { paymentMethodId: id }), 402, "INSUFFICIENT_FUNDS").declineCode,
      "card_declined",
    );
  });

  test("POST, the same token repeated: stores one method", async () => {
    const buyer = await market.createUser();
    const replies = await Promise.all(Array.from({ length: runs(20) }, () => add(buyer, "pm_test_ok")));
    assert.deepEqual(new Set(replies.map(({ status, body }) => `${status} ${body.data?.id}`)).size, 1);
    assert.equal((await listed(buyer)).length, shared.length + 1);
  });

  test("POST: a method that the provider does not know is 404; without the provider's answer it is 503", async () => {
    const buyer = await market.createUser();
    for (const token of ["pm_test_nobody", "pm_", "..", "a b/c?d", "pm_test_ok\n"])
      assertError(await add(buyer, token), 404, "PAYMENT_METHOD_NOT_FOUND");
    line.trouble = "down";
    const reply = await add(buyer, "pm_test_ok");
    line.trouble = "none";
    assertError(reply, 503, "SERVICE_UNAVAILABLE");
    assert.equal(reply.headers.get("retry-after"), "1");
    assert.equal((await listed(buyer)).length, shared.length);
  });

  test("POST without a token: 400", async () => {
    const buyer = await market.createUser();
    for (const body of [{}, { token: "" }, { token: 1 }, { token: "x".repeat(256) }])
      assertError(await buyer.post(PATH, body), 400, "INVALID_REQUEST", "token");
    assertError(
      await buyer.post(PATH, { token: "pm_test_ok", number: "4242" }),
      400,
      "INVALID_REQUEST",
      "number",
    );
  });

  test("POST, concurrent requests: a user has at most ten methods of their own", async () => {
    const buyer = await market.createUser();
    await market.query(
      `insert into payment_methods (id, user_id, brand, last4, created_at)
       select 'pm_old_' || n, $1, 'visa', '0000', $2 from generate_series(1, 8) n`,
      [buyer.userId, market.clock.now],
    );
    const replies = await Promise.all(shared.slice(0, 6).map(({ id }) => add(buyer, id)));
    assert.equal(replies.filter(({ status }) => status === 201).length, 2);
    const refused = replies.find(({ status }) => status !== 201)!;
    assertError(refused, 422, "VALIDATION_ERROR", "token");
  });

  test("GET with pages: the user's own methods newest first, then the shared ones", async () => {
    const buyer = await market.createUser();
    const own: string[] = [];
    for (const { id } of shared.slice(0, 3)) {
      own.unshift(await createMethod(buyer, id));
      market.clock.forward(1);
    }
    const expected = [...own, ...shared.map(({ id }) => id)];
    const paged: string[] = [];
    for (let page = 1; page <= Math.ceil(expected.length / 2); page++) {
      const { body } = await buyer.get(`${PATH}?page=${page}&limit=2`);
      assert.equal(body.meta.total, expected.length);
      paged.push(...body.data.map(({ id }: { id: string }) => id));
    }
    assert.deepEqual(paged, expected);
    assert.deepEqual(await listed(buyer, "?page=99"), []);
  });
});

suite("the default method", () => {
  test("a purchase that names no method: uses the default", async () => {
    const buyer = await market.createUser();
    const id = await createMethod(buyer, "pm_test_insufficient_funds");
    const reply = await buyer.post(`${PATH}/${id}/default`);
    assert.equal(reply.status, 200, reply.text);
    assert.partialDeepStrictEqual(reply.body.data, { id, isDefault: true });
    assertError(await buy(buyer), 402, "INSUFFICIENT_FUNDS");
    assert.equal((await buy(buyer, { paymentMethodId: "pm_test_ok" })).status, 201);
  });

  test("a shared method: can be the default", async () => {
    const buyer = await market.createUser();
    const reply = await buyer.post(`${PATH}/pm_test_declined/default`);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(await defaultsOf(buyer), ["pm_test_declined"]);
    assertError(await buy(buyer), 402, "INSUFFICIENT_FUNDS");
  });

  test("concurrent changes: exactly one default", async () => {
    const buyer = await market.createUser();
    const ids = [
      await createMethod(buyer, "pm_test_ok"),
      await createMethod(buyer, "pm_test_declined"),
      "pm_test_ok",
    ];
    const replies = await Promise.all(
      Array.from({ length: runs(20) }, (_, nth) => buyer.post(`${PATH}/${ids[nth % 3]}/default`)),
    );
    assert.ok(replies.every(({ status }) => status === 200));
    assert.equal((await defaultsOf(buyer)).length, 1);
  });

  test("a change to a method that is removed meanwhile: refused", async () => {
    const buyer = await market.createUser();
    for (let round = 0; round < runs(10); round++) {
      const id = await createMethod(buyer);
      const choose = () => buyer.post(`${PATH}/${id}/default`);
      await Promise.all([choose(), buyer.delete(`${PATH}/${id}`), choose()]);
      assert.deepEqual(await defaultsOf(buyer), ["pm_test_ok"]);
    }
  });

  test("without shared methods: the first stored method is the default, and none after its removal", async () => {
    const buyer = await market.createUser();
    const everybodys = shared.splice(0);
    try {
      assertError(await buy(buyer), 422, "VALIDATION_ERROR", "paymentMethodId");
      assertError(await buy(buyer, { paymentMethodId: "pm_test_ok" }), 404, "PAYMENT_METHOD_NOT_FOUND");
      const first = await createMethod(buyer);
      await createMethod(buyer, "pm_test_declined");
      assert.deepEqual(await defaultsOf(buyer), [first]);
      assert.equal((await buy(buyer)).status, 201);
      assert.equal((await buyer.delete(`${PATH}/${first}`)).status, 200);
      assert.deepEqual(await defaultsOf(buyer), []);
      assertError(await buy(buyer), 422, "VALIDATION_ERROR", "paymentMethodId");
    } finally {
      shared.push(...everybodys);
    }
  });
});

suite("a method", () => {
  test("removed: pays nothing more", async () => {
    const buyer = await market.createUser();
    const id = await createMethod(buyer);
    await buyer.post(`${PATH}/${id}/default`);
    assert.deepEqual((await buyer.delete(`${PATH}/${id}`)).body.data, { id, deleted: true });
    assertError(await buy(buyer, { paymentMethodId: id }), 404, "PAYMENT_METHOD_NOT_FOUND");
    assertError(await buyer.delete(`${PATH}/${id}`), 404, "PAYMENT_METHOD_NOT_FOUND");
    assert.equal((await buy(buyer)).status, 201, "and is not the default any more");
  });

  test("shared: cannot be removed", async () => {
    assertError(
      await (await market.createUser()).delete(`${PATH}/pm_test_ok`),
      422,
      "VALIDATION_ERROR",
      "methodId",
    );
  });

  test("of another user: 404 for every request", async () => {
    const [owner, other] = [await market.createUser(), await market.createUser()];
    const id = await createMethod(owner);
    const session = await market.createSession(other.userId);
    for (const refused of [
      await buy(other, { paymentMethodId: id }),
      await other.post(`${PATH}/${id}/default`),
      await other.delete(`${PATH}/${id}`),
      await add(other, id),
      await session.put("/v1/account/subscription", { plan: "pro", paymentMethodId: id }),
    ])
      assertError(refused, 404, "PAYMENT_METHOD_NOT_FOUND");
    assert.deepEqual((await other.get("/v1/purchases")).body.data, []);
    assert.equal((await listed(owner))[0].id, id);
  });

  test("under an id that names nothing: 404", async () => {
    const buyer = await market.createUser();
    for (const id of ["pm_nobody", "%00", "%F0%9F%92%B3", "x".repeat(300), "pm%20ok", "usr_1"]) {
      assertError(await buyer.post(`${PATH}/${id}/default`), 404, "PAYMENT_METHOD_NOT_FOUND");
      assertError(await buyer.delete(`${PATH}/${id}`), 404, "PAYMENT_METHOD_NOT_FOUND");
    }
  });
});

test("closing an account: deletes its payment methods and detaches them at the provider", async () => {
  const person = await market.createUser();
  const session = await market.createSession(person.userId);
  await person.post(`${PATH}/${await createMethod(person)}/default`);
  const { email } = (await session.get("/v1/account")).body.data;
  const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(closed.status, 200, closed.text);
  const countRows = async (table: string) =>
    (await market.query(`select * from ${table} where user_id = $1`, [person.userId])).rows;
  assert.deepEqual(await countRows("payment_methods"), []);
  assert.partialDeepStrictEqual(await countRows("payment_customers"), [{ default_method_id: null }]);
  const late = market.query("insert into payment_methods values ('pm_late', $1, 'visa', '0000', $2)", [
    person.userId,
    market.clock.now,
  ]);
  await assert.rejects(late, /is closed/);
});
