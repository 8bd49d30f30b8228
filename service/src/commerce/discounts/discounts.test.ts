import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
});
after(() => market.close());

let codes = 0;
const newCode = () => `CODE-${++codes}`;
const create = (input: object, who = seller) => who.post("/v1/discount-codes", { code: newCode(), ...input });

async function createCode(input: object = {}, who = seller) {
  const reply = await create({ percentOff: 10, ...input }, who);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const change = (id: string, input: object) => seller.patch(`/v1/discount-codes/${id}`, input);

test("POST /discount-codes: returns the code with all its fields", async () => {
  const productId = await createProduct(seller, { price: 9, currency: "EUR" });
  const input = {
    code: "Spring_26",
    amountOff: 2.5,
    productId,
    startsAt: "2026-06-01T00:00:00.000Z",
    endsAt: "2026-07-01T02:00:00+02:00",
    maxRedemptions: 100,
    maxPerBuyer: 1,
  };
  const { id, ...code } = await createCode({ ...input, percentOff: undefined });
  assert.match(id, /^disc_[0-9a-z]{26}$/);
  const at = market.clock.now.toISOString();
  assert.deepEqual(code, {
    ...input,
    percentOff: null,
    currency: "EUR",
    endsAt: "2026-07-01T00:00:00.000Z",
    redemptions: 0,
    createdAt: at,
    updatedAt: at,
  });
  assert.deepEqual((await seller.get(`/v1/discount-codes/${id}`)).body.data, { id, ...code });
});

test("POST /discount-codes with percentOff only: valid for all products and buyers without an end", async () => {
  const {
    id: _,
    code: _code,
    createdAt: _made,
    updatedAt: _changed,
    ...rest
  } = await createCode({
    percentOff: 33.33,
  });
  assert.deepEqual(rest, {
    percentOff: 33.33,
    amountOff: null,
    currency: null,
    productId: null,
    startsAt: null,
    endsAt: null,
    maxRedemptions: null,
    maxPerBuyer: null,
    redemptions: 0,
  });
});

const invalidInputs: [field: string, input: object][] = [
  ["percentOff", {}],
  ["percentOff", { percentOff: 10, amountOff: 1 }],
  ["percentOff", { percentOff: -1 }],
  ["percentOff", { percentOff: 100.01 }],
  ["percentOff", { percentOff: 0.001 }],
  ["percentOff", { percentOff: 5e-324 }],
  ["percentOff", { percentOff: "10" }],
  ["amountOff", { amountOff: 0 }],
  ["amountOff", { amountOff: 1.005 }],
  ["amountOff", { amountOff: 1.5, currency: "JPY" }],
  ["currency", { amountOff: 1, currency: "CHF" }],
  ["currency", { amountOff: 1, currency: "dollars" }],
  ["currency", { percentOff: 10, currency: "USD" }],
  ["code", { percentOff: 10, code: "" }],
  ["code", { percentOff: 10, code: "TWO WORDS" }],
  ["code", { percentOff: 10, code: "x".repeat(65) }],
  ["startsAt", { percentOff: 10, startsAt: "tomorrow" }],
  ["endsAt", { percentOff: 10, startsAt: "2026-06-01T00:00:00Z", endsAt: "2026-06-01T00:00:00Z" }],
  ["maxRedemptions", { percentOff: 10, maxRedemptions: 0 }],
  ["maxPerBuyer", { percentOff: 10, maxPerBuyer: 1.5 }],
  ["redemptions", { percentOff: 10, redemptions: 5 }],
];
for (const [field, input] of invalidInputs)
  test(`POST /discount-codes with ${JSON.stringify(input).slice(0, 80)}: 400 INVALID_REQUEST`, async () => {
    assertError(await create(input), 400, "INVALID_REQUEST", field);
  });

test("POST /discount-codes with productId: must be the seller's own product and have its currency", async () => {
  const productId = await createProduct(await market.createUser());
  const unknown = toId("prod", newUuid(new Date()));
  for (const id of [productId, unknown, "nonsense", ""])
    assertError(await create({ percentOff: 10, productId: id }), 404, "PRODUCT_NOT_FOUND");
  const own = await createDraft(seller, { price: 500, currency: "JPY" });
  const reply = await create({ amountOff: 1, currency: "USD", productId: own });
  assertError(reply, 422, "VALIDATION_ERROR", "currency");
  assert.equal((await createCode({ percentOff: undefined, amountOff: 100, productId: own })).currency, "JPY");
});

test("a code name: unique for a seller regardless of case, until its deletion", async () => {
  const { id } = await createCode({ code: "Once" });
  assertError(await create({ code: "oNCE", percentOff: 1 }), 409, "CONFLICT", "code");
  const other = await createCode({ code: "Twice" });
  assertError(await change(other.id, { code: "ONCE" }), 409, "CONFLICT", "code");
  await createCode({ code: "once" }, await market.createUser({ role: "seller" }));
  assert.equal((await seller.delete(`/v1/discount-codes/${id}`)).status, 200);
  await createCode({ code: "ONCE" });
});

test("POST /discount-codes: concurrent requests with one name create one code", async () => {
  const code = newCode();
  const replies = await Promise.all(Array.from({ length: runs(20) }, () => create({ code, percentOff: 10 })));
  assert.equal(replies.filter(({ status }) => status === 201).length, 1);
  assert.equal(replies.filter(({ status }) => status === 409).length, replies.length - 1);
});

test("PATCH: changes only the sent fields; null removes a limit", async () => {
  const { id, code } = await createCode({ maxRedemptions: 5, endsAt: "2027-01-01T00:00:00.000Z" });
  market.clock.forward(1_000);
  const changed = (await change(id, { maxRedemptions: null, maxPerBuyer: 2 })).body.data;
  assert.partialDeepStrictEqual(changed, {
    id,
    code,
    percentOff: 10,
    maxRedemptions: null,
    maxPerBuyer: 2,
    endsAt: "2027-01-01T00:00:00.000Z",
    updatedAt: market.clock.now.toISOString(),
  });
});

test("PATCH with percentOff or amountOff: replaces the other", async () => {
  const { id } = await createCode();
  const changeDiscount = async (input: object) => {
    const { percentOff, amountOff, currency } = (await change(id, input)).body.data;
    return [percentOff, amountOff, currency];
  };
  assert.deepEqual(await changeDiscount({ amountOff: 3 }), [null, 3, "USD"]);
  assert.deepEqual(await changeDiscount({ amountOff: 4, currency: "EUR" }), [null, 4, "EUR"]);
  assert.deepEqual(await changeDiscount({ amountOff: 5 }), [null, 5, "EUR"]);
  assert.deepEqual(await changeDiscount({ percentOff: 25 }), [25, null, null]);
  assertError(await change(id, { percentOff: 1, amountOff: 1 }), 400, "INVALID_REQUEST", "percentOff");
  assertError(await change(id, { currency: "EUR" }), 400, "INVALID_REQUEST", "currency");
  assert.deepEqual(await changeDiscount({}), [25, null, null]);
});

test("PATCH with an outdated If-Match: 412; a redemption does not change the ETag", async () => {
  const { id } = await createCode();
  const etag = (await seller.get(`/v1/discount-codes/${id}`)).headers.get("etag")!;
  await market.query("update discount_codes set redemptions = redemptions + 1");
  const path = `/v1/discount-codes/${id}`;
  assert.equal((await seller.patch(path, { percentOff: 20 }, { "if-match": etag })).status, 200);
  assertError(await seller.patch(path, { percentOff: 30 }, { "if-match": etag }), 412, "PRECONDITION_FAILED");
  await market.query("update discount_codes set redemptions = redemptions - 1");
});

test("GET /discount-codes: newest first, without deleted codes and those of others", async () => {
  const owner = await market.createUser({ role: "seller" });
  const ids = [];
  for (let at = 0; at < 3; at++) ids.push((await createCode({}, owner)).id);
  await owner.delete(`/v1/discount-codes/${ids[1]}`);
  const { data, meta } = (await owner.get("/v1/discount-codes?limit=1")).body;
  assert.deepEqual([data.map(({ id }: { id: string }) => id), meta.total], [[ids[2]], 2]);
  assert.equal((await owner.get("/v1/discount-codes?limit=1&page=2")).body.data[0].id, ids[0]);
});

test("GET /discount-codes by status and product: each code has one status, and those for all apply to each product", async () => {
  const owner = await market.createUser({ role: "seller" });
  const [productId, other] = [await createDraft(owner), await createDraft(owner)];
  const [past, future] = [-1, 1].map((days) =>
    new Date(market.clock.now.getTime() + days * 86_400_000).toISOString(),
  );
  const made = {
    active: await createCode({ productId }, owner),
    scheduled: await createCode({ startsAt: future }, owner),
    ended: await createCode({ productId: other, endsAt: past, maxRedemptions: 1 }, owner),
    used_up: await createCode({ productId, startsAt: future, maxRedemptions: 1 }, owner),
  };
  await market.query("update discount_codes set redemptions = 1 where id = any ($1)", [
    [made.ended, made.used_up].map(({ id }) => toUuid("disc", id)),
  ]);
  const idsOf = async (query: string) =>
    (await owner.get(`/v1/discount-codes?${query}`)).body.data.map(({ id }: { id: string }) => id);
  for (const [status, { id }] of Object.entries(made))
    assert.deepEqual(await idsOf(`status=${status}`), [id]);
  assert.deepEqual(
    await idsOf(`productId=${productId}`),
    [made.used_up, made.scheduled, made.active].map(({ id }) => id),
  );
  assert.deepEqual(await idsOf(`productId=${other}&status=ended`), [made.ended.id]);
  assert.deepEqual(await idsOf("productId=nonsense"), []);
  assertError(await owner.get("/v1/discount-codes?status=lost"), 400, "INVALID_REQUEST", "status");
  // The ledger check compares the counts with the orders.
  await market.query("update discount_codes set redemptions = 0");
});

test("a deleted, foreign or unknown code: 404 on every path", async () => {
  const removed = (await createCode()).id;
  await seller.delete(`/v1/discount-codes/${removed}`);
  const others = (await createCode({}, await market.createUser({ role: "seller" }))).id;
  for (const id of [removed, others, toId("disc", newUuid(new Date())), "nonsense"]) {
    const path = `/v1/discount-codes/${id}`;
    assertError(await seller.get(path), 404, "DISCOUNT_CODE_NOT_FOUND");
    assertError(await seller.patch(path, { percentOff: 1 }), 404, "DISCOUNT_CODE_NOT_FOUND");
    assertError(await seller.delete(path), 404, "DISCOUNT_CODE_NOT_FOUND");
  }
});

test("discount codes without the seller role or products:write: 403 UNAUTHORIZED", async () => {
  const user = await market.createUser();
  for (const reply of [await user.get("/v1/discount-codes"), await create({ percentOff: 1 }, user)])
    assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "manage:products");
  const reader = await market.createUser({ role: "seller", permissions: ["products:read"] });
  const details = assertError(await reader.get("/v1/discount-codes"), 403, "UNAUTHORIZED");
  assert.equal(details.required, "products:write");
});
