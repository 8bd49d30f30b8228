import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { removeDemo } from "../../backoffice/demo/demo.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { excludeReviewFromRating, includeReviewInRating } from "./rating.ts";

const HISTORIES = 15;

let market: Market;
let seller: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
  seller = await market.createUser({ name: "Seller" });
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

/** Compares the stored rating and its copy in the listing with a recount. */
async function assertTrue(productId: string) {
  const { rows } = await market.query(
    `select s.rating_sum, s.rating_count, s.rating_mean, s.rating_score,
            l.rating_mean as listed_mean, l.rating_score as listed_score, r.sum, r.count
       from product_stats s
       join listings l on l.product_id = s.product_id
       cross join (select coalesce(sum(rating), 0)::int as sum, count(*)::int as count from reviews
                    where product_id = $1 and hidden_at is null and not refunded) r
      where s.product_id = $1`,
    [toUuid("prod", productId)],
  );
  const { sum, count, ...kept } = rows[0];
  const [mean, score] = [count === 0 ? 0 : sum / count, (sum + 3.5 * 10) / (count + 10)];
  assert.deepEqual(kept, {
    rating_sum: sum,
    rating_count: count,
    rating_mean: mean,
    rating_score: score,
    listed_mean: mean,
    listed_score: score,
  });
  const { meta } = (await seller.get(`/v1/products/${productId}/reviews`)).body;
  const stars: number[] = Object.values(meta.ratings.stars);
  assert.deepEqual([meta.ratings.count, stars.reduce((all, one) => all + one)], [count, count]);
  return { sum, count };
}

async function hasBuyers(productId: string, many: number): Promise<Client[]> {
  const buyers = await Promise.all(Array.from({ length: many }, () => market.createUser()));
  await Promise.all(buyers.map((buyer) => buyProduct(buyer, productId)));
  return buyers;
}

/** The steps of a refund: entitlement first, then the review, in one transaction. */
const setEntitled = (buyer: Client, productId: string, entitled: boolean) =>
  market.service.ctx.db.transaction().execute(async (tx) => {
    const id = toUuid("prod", productId)!;
    await tx
      .updateTable("entitlements")
      .set({ status: entitled ? "active" : "revoked" })
      .where("buyerId", "=", buyer.userId)
      .where("productId", "=", id)
      .execute();
    await (entitled ? includeReviewInRating : excludeReviewFromRating)(tx, buyer.userId, id);
  });

const idOf = async (buyer: Client): Promise<string> => {
  const { rows } = await market.query("select id from reviews where author_id = $1", [buyer.userId]);
  return rows[0] ? toId("rev", rows[0].id) : "rev_none";
};

interface Step {
  what: "post" | "patch" | "delete" | "hide" | "restore" | "report" | "refund" | "rebuy" | "sale" | "edit";
  who: number;
  rating: number;
}

async function take({ what, who, rating }: Step, productId: string, buyers: Client[]): Promise<void> {
  const buyer = buyers[who]!;
  const base = `/v1/products/${productId}/reviews`;
  const id = await idOf(buyer);
  const done: Record<Step["what"], () => Promise<Reply | undefined>> = {
    post: () => buyer.post(base, { rating }),
    patch: () => buyer.patch(`${base}/${id}`, { rating }),
    delete: () => buyer.delete(`${base}/${id}`),
    hide: () => admin.post(`/v1/admin/reviews/${id}/hide`, { reason: "Spam" }),
    restore: () => admin.post(`/v1/admin/reviews/${id}/restore`),
    report: () => seller.post(`${base}/${id}/report`, { reason: "Spam" }),
    refund: async () => void (await setEntitled(buyer, productId, false)),
    rebuy: async () => void (await setEntitled(buyer, productId, true)),
    sale: async () => (await market.createUser()).post("/v1/purchases", { productId }),
    edit: () => seller.patch(`/v1/products/${productId}`, { title: `Title ${rating}` }),
  };
  const reply = await done[what]();
  assert.ok(!reply || reply.status < 500, `${what} ${reply?.text}`);
}

const step = fc.record<Step>({
  what: fc.constantFrom(
    ...(["post", "post", "patch", "patch", "delete", "hide", "restore", "report"] as const),
    ...(["refund", "rebuy", "sale", "edit"] as const),
  ),
  who: fc.integer({ min: 0, max: 2 }),
  rating: fc.integer({ min: 1, max: 5 }),
});

suite("the stored rating", () => {
  test("equals a recount after any history, sequential and parallel", async () => {
    const productId = await createProduct(seller);
    const buyers = await hasBuyers(productId, 3);
    const counts = new Set<number>();
    const history = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 3, maxLength: 6 });
    const property = fc.asyncProperty(history, async (rounds) => {
      for (const round of rounds) {
        await Promise.all(round.map((one) => take(one, productId, buyers)));
        counts.add((await assertTrue(productId)).count);
      }
    });
    await fc.assert(property, { numRuns: runs(HISTORIES), endOnFailure: true });
    assert.ok(counts.size > (isFullSize ? 2 : 1), "the histories moved something");
  });

  test("twenty parallel changes of one review: correct", async () => {
    const productId = await createProduct(seller);
    const [buyer] = await hasBuyers(productId, 1);
    const steps: Step["what"][] = ["patch", "delete", "hide", "restore", "post", "refund", "rebuy", "edit"];
    for (let round = 0; round < 3; round++) {
      await buyer!.post(`/v1/products/${productId}/reviews`, { rating: 3 });
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          take({ what: steps[at % steps.length]!, who: 0, rating: (at % 5) + 1 }, productId, [buyer!]),
        ),
      );
      await assertTrue(productId);
    }
  });

  test("twenty parallel deletions: one review less", async () => {
    const productId = await createProduct(seller);
    const [buyer, other] = await hasBuyers(productId, 2);
    for (const who of [buyer!, other!]) await who.post(`/v1/products/${productId}/reviews`, { rating: 4 });
    const path = `/v1/products/${productId}/reviews/${await idOf(buyer!)}`;
    const replies = await Promise.all(Array.from({ length: 20 }, () => buyer!.delete(path)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(404)]);
    assert.deepEqual(await assertTrue(productId), { sum: 4, count: 1 });
  });
});

suite("the review of a refunded buyer", () => {
  test("stays listed and marked, and does not count until they buy again", async () => {
    const productId = await createProduct(seller);
    const [happy, unhappy] = await hasBuyers(productId, 2);
    await happy!.post(`/v1/products/${productId}/reviews`, { rating: 5 });
    await unhappy!.post(`/v1/products/${productId}/reviews`, { rating: 1 });
    await setEntitled(unhappy!, productId, false);
    assert.deepEqual(await assertTrue(productId), { sum: 5, count: 1 });
    const { data, meta } = (await seller.get(`/v1/products/${productId}/reviews`)).body;
    assert.deepEqual(
      data.map((item: { rating: number; refunded: boolean }) => [item.rating, item.refunded]),
      [
        [1, true],
        [5, false],
      ],
    );
    assert.deepEqual([meta.total, meta.ratings.average], [2, 5]);
    await setEntitled(unhappy!, productId, true);
    assert.deepEqual(await assertTrue(productId), { sum: 6, count: 2 });
  });

  test("changed, hidden, restored or deleted meanwhile: the rating does not move", async () => {
    const productId = await createProduct(seller);
    const [buyer] = await hasBuyers(productId, 1);
    await buyer!.post(`/v1/products/${productId}/reviews`, { rating: 2 });
    await setEntitled(buyer!, productId, false);
    for (const what of ["patch", "hide", "restore", "delete"] as const) {
      await take({ what, who: 0, rating: 5 }, productId, [buyer!]);
      assert.deepEqual(await assertTrue(productId), { sum: 0, count: 0 });
    }
  });

  test("excluded twice: counts once; no review: nothing happens", async () => {
    const productId = await createProduct(seller);
    const [buyer, silent] = await hasBuyers(productId, 2);
    await buyer!.post(`/v1/products/${productId}/reviews`, { rating: 2 });
    for (const who of [buyer!, buyer!, silent!]) await setEntitled(who, productId, false);
    assert.deepEqual(await assertTrue(productId), { sum: 0, count: 0 });
  });

  test("posted during the refund: does not count", async () => {
    for (let round = 0; round < 5; round++) {
      const productId = await createProduct(seller);
      const [buyer] = await hasBuyers(productId, 1);
      await Promise.all([
        buyer!.post(`/v1/products/${productId}/reviews`, { rating: 1 }),
        setEntitled(buyer!, productId, false),
      ]);
      assert.deepEqual(await assertTrue(productId), { sum: 0, count: 0 });
    }
  });
});

suite("sort by rating", () => {
  test("many good reviews before one perfect one, one bad one last", async () => {
    const input = { tags: ["rated"] };
    const [many, one, none, bad] = [
      await createProduct(seller, input),
      await createProduct(seller, input),
      await createProduct(seller, input),
      await createProduct(seller, input),
    ];
    const give = async (productId: string, ratings: number[]) => {
      const buyers = await hasBuyers(productId, ratings.length);
      for (const [at, buyer] of buyers.entries())
        await buyer.post(`/v1/products/${productId}/reviews`, { rating: ratings[at] });
    };
    await give(many, [5, 5, 5, 4, 5]);
    await give(one, [5]);
    await give(bad, [1]);
    const { body } = await seller.get("/v1/products?tag=rated&sort=rating");
    assert.deepEqual(
      body.data.map(({ id }: { id: string }) => id),
      [many, one, none, bad],
    );
  });
});

test("demo deletion: its users' reviews leave the ratings of other products", async () => {
  const productId = await createProduct(seller);
  const [stays, demoUser] = await hasBuyers(productId, 2);
  for (const [buyer, rating] of [
    [stays!, 5],
    [demoUser!, 1],
  ] as const)
    await buyer.post(`/v1/products/${productId}/reviews`, { rating });
  const path = `/v1/products/${productId}/reviews/${await idOf(stays!)}`;
  assert.equal((await demoUser!.post(`${path}/report`, { reason: "Spam" })).status, 201);
  await market.query("update users set demo = true where id = $1", [demoUser!.userId]);
  await removeDemo(market.service.ctx);
  assert.deepEqual(await assertTrue(productId), { sum: 5, count: 1 });
});
