import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let user: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
});
after(() => market.close());

async function wishesOf(who: Client): Promise<string[]> {
  const reply = await who.get("/v1/wishlist");
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.meta.total, reply.body.data.length);
  return reply.body.data.map(({ product }: { product: { id: string } }) => product.id);
}

test("PUT, GET and DELETE /v1/wishlist: newest first, each product once, each user's own", async () => {
  user = await market.createUser();
  const [first, second] = [await createProduct(seller), await createProduct(seller)] as const;
  const added = await user.put(`/v1/wishlist/${first}`);
  market.clock.forward(1_000);
  await user.put(`/v1/wishlist/${second}`);
  const repeated = await user.put(`/v1/wishlist/${first}`);
  assert.deepEqual(repeated.body.data, added.body.data);
  assert.deepEqual(await wishesOf(user), [second, first]);
  const { data } = (await user.get("/v1/wishlist")).body;
  assert.equal(data[1].addedAt, added.body.data.addedAt);
  assert.equal(data[0].product.title, (await user.get(`/v1/products/${second}`)).body.data.title);
  for (const [productId, total] of [
    [second, 1],
    [await createProduct(seller), 0],
    ["prod_x", 0],
  ] as const)
    assert.equal((await user.get(`/v1/wishlist?productId=${productId}`)).body.meta.total, total);
  assert.deepEqual(await wishesOf(await market.createUser()), []);
  for (let n = 0; n < 2; n++) assert.equal((await user.delete(`/v1/wishlist/${second}`)).status, 200);
  assert.deepEqual(await wishesOf(user), [first]);
});

test("a product that is not on sale: cannot be added, and is left out until it is", async () => {
  user = await market.createUser();
  const productId = await createProduct(seller);
  await user.put(`/v1/wishlist/${productId}`);
  await seller.post(`/v1/products/${productId}/unpublish`);
  assert.deepEqual(await wishesOf(user), []);
  assertError(await user.put(`/v1/wishlist/${await createDraft(seller)}`), 404, "PRODUCT_NOT_FOUND");
  assertError(await user.put("/v1/wishlist/nothing"), 404, "PRODUCT_NOT_FOUND");
  assertError(await user.delete("/v1/wishlist/nothing"), 404, "PRODUCT_NOT_FOUND");
  assert.equal((await seller.post(`/v1/products/${productId}/publish`)).status, 200);
  assert.deepEqual(await wishesOf(user), [productId]);
});

test("a full wishlist: 422 also for additions at once, and what is on it can be added again", async () => {
  user = await market.createUser();
  const [listed, ...others] = await Promise.all(Array.from({ length: 3 }, () => createProduct(seller)));
  await user.put(`/v1/wishlist/${listed}`);
  // As many as fit but for one, past the API, of products that are on no list.
  await market.query(
    `with copies as (
       insert into products
       select copy.* from (select p from products p limit 1) one,
              (select gen_random_uuid() as copy_id from generate_series(1, 998)) ids
        cross join jsonb_populate_record(p, jsonb_build_object('id', copy_id)) copy
       returning id),
     listed as (
       insert into listings
       select copy.* from (select l from listings l where status = 'published' limit 1) one, copies
        cross join jsonb_populate_record(l, jsonb_build_object('product_id', copies.id)) copy)
     insert into wishlist_entries (user_id, product_id, added_at) select $1, id, now() from copies`,
    [user.userId],
  );
  // Without the lock of the account, both would count before either is added.
  const { added } = await market.service.ctx.db.transaction().execute(async (tx) => {
    await sql`select from users where id = ${user.userId} for no key update`.execute(tx);
    const added = Promise.all(others.map((id) => user.put(`/v1/wishlist/${id}`)));
    await waitForBlockedStatements(market, others.length);
    return { added };
  });
  const replies = await added;
  assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 422]);
  assert.equal((await user.put(`/v1/wishlist/${listed}`)).status, 200);
});
