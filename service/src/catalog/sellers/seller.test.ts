import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { picture, send } from "../../../test/uploads.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let buyer: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  buyer = await market.createUser({ name: "Buyer" });
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

interface Person {
  key: Client;
  session: Client;
  id: string;
}

async function createPerson(name = "Ada"): Promise<Person> {
  const key = await market.createUser({ name });
  return { key, session: await market.createSession(key.userId), id: toId("usr", key.userId) };
}

const guestHeaders = () => {
  const { name, value } = market.service.ctx.guests.cookie();
  return { cookie: `${name}=${value}` };
};

const readSeller = async (handle: string) => {
  const reply = await market.as(null).get(`/v1/sellers/${handle}`, guestHeaders());
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};

const assertNotFound = async (handle: string) =>
  assertError(await buyer.get(`/v1/sellers/${encodeURIComponent(handle)}`), 404, "SELLER_NOT_FOUND");

const countsOf = async (id: string) => {
  // Counters may be cached for four seconds.
  market.clock.forward(5_000);
  return (await readSeller(id)).counts;
};

async function change({ session }: Person, fields: object): Promise<void> {
  const reply = await session.patch("/v1/account", fields);
  assert.equal(reply.status, 200, reply.text);
}

const judge = async ({ id }: Person, verdict: "ban" | "unban") => {
  const reply = await admin.post(
    `/v1/admin/users/${id}/${verdict}`,
    verdict === "ban" ? { reason: "Fraud" } : undefined,
  );
  assert.equal(reply.status, 200, reply.text);
};

suite("GET /sellers/{handle}", () => {
  test("a guest reads the whole profile by id, or by handle in any case", async () => {
    const ada = await createPerson("Ada Lovelace");
    await createProduct(ada.key);
    const empty = await readSeller(ada.id);
    assert.deepEqual(empty, {
      id: ada.id,
      handle: null,
      name: "Ada Lovelace",
      bio: null,
      avatar: null,
      links: [],
      verified: false,
      counts: { products: 1, sales: 0, reviews: 0, rating: null },
      memberSince: market.clock.now.toISOString(),
    });
    const links = [
      { label: "Notes", url: "https://example.com/notes" },
      { label: null, url: "https://example.org/" },
    ];
    await change(ada, { handle: "Ada-L", bio: "Engines.", links });
    await admin.patch(`/v1/admin/users/${ada.id}`, { verified: true });
    const { body } = await send(ada.session, "/v1/account/avatar", { name: "a.png", bytes: await picture() });
    const whole = { ...empty, handle: "ada-l", bio: "Engines.", avatar: body.data, links, verified: true };
    for (const handle of [ada.id, "ada-l", "ADA-l"]) assert.deepEqual(await readSeller(handle), whole);
  });

  test("counts: published products; sales and reviews of all products, without refunded ones", async () => {
    const ada = await createPerson();
    const [kept, removed] = [await createProduct(ada.key), await createProduct(ada.key)];
    await createDraft(ada.key);
    const others = await Promise.all([1, 2, 3].map(() => market.createUser()));
    const [first, second, refunded] = others as [Client, Client, Client];
    for (const reader of others) await buyProduct(reader, kept);
    await buyProduct(first, removed);
    await first.post(`/v1/products/${removed}/reviews`, { rating: 5 });
    await second.post(`/v1/products/${kept}/reviews`, { rating: 4 });
    await refunded.post(`/v1/products/${kept}/reviews`, { rating: 1 });
    await first.post(`/v1/products/${kept}/reviews`, { rating: 4 });
    assert.deepEqual(await countsOf(ada.id), { products: 2, sales: 4, reviews: 4, rating: 3.5 });
    await refundEverything(market, refunded);
    await ada.key.delete(`/v1/products/${removed}`);
    assert.deepEqual(await countsOf(ada.id), { products: 1, sales: 3, reviews: 3, rating: 4.33 });
  });

  test("people who sell nothing, unknown handles and ids: 404", async () => {
    const reader = await createPerson();
    await change(reader, { handle: "only-a-reader" });
    const { userId } = await market.createUser({ role: "admin" });
    for (const handle of [
      "only-a-reader",
      reader.id,
      toId("usr", userId),
      "nobody-here",
      "admin",
      "usr_x",
      "a",
      "\0",
      "%",
      "x".repeat(5_000),
    ])
      await assertNotFound(handle);
    await createDraft(reader.key);
    assert.equal((await readSeller("only-a-reader")).counts.products, 0);
  });

  test("an administrator with a product on sale: found while it is", async () => {
    const author = await market.createUser({ role: "admin" });
    const id = toId("usr", author.userId);
    const productId = await createProduct(author);
    assert.equal((await readSeller(id)).counts.products, 1);
    await author.post(`/v1/products/${productId}/unpublish`);
    await assertNotFound(id);
  });

  test("banned: 404 at once, with the avatar; both again after an unban", async () => {
    const ada = await createPerson();
    await createProduct(ada.key);
    await change(ada, { handle: "to-be-banned" });
    const bytes = await picture({ red: 3 });
    const { url } = (await send(ada.session, "/v1/account/avatar", { name: "a.png", bytes })).body.data;
    await readSeller("to-be-banned");
    await judge(ada, "ban");
    for (const handle of ["to-be-banned", ada.id]) await assertNotFound(handle);
    assert.equal((await fetch(url)).status, 404);
    await judge(ada, "unban");
    assert.equal((await readSeller("to-be-banned")).id, ada.id);
    assert.equal((await fetch(url)).status, 200);
  });

  test("no email address in it, whatever the account has", async () => {
    const ada = await createPerson();
    await createDraft(ada.key);
    const { email } = (await ada.key.get("/v1/account")).body.data;
    const { text } = await buyer.get(`/v1/sellers/${ada.id}`);
    assert.ok(!text.includes(email) && !text.includes("@"), text);
  });
});

suite("the author of products", () => {
  test("a new handle and avatar: at once on cards in every list, details, purchases and the wishlist", async () => {
    const ada = await createPerson();
    const [productId, draft] = [
      await createProduct(ada.key, { tags: ["of-ada"] }),
      await createDraft(ada.key),
    ];
    const other = await createProduct(await market.createUser(), { tags: ["of-ada"] });
    const reader = await market.createUser();
    const orderId = await buyProduct(reader, productId);
    await reader.put(`/v1/wishlist/${productId}`);
    const authors = async () => {
      const listed = (await reader.get("/v1/products?limit=100")).body.data;
      const own = (await ada.key.get("/v1/products?author=me&limit=100")).body.data;
      const similar = (await reader.get(`/v1/products/${other}/similar`)).body.data;
      const [entry] = (await reader.get("/v1/wishlist")).body.data;
      const details = [
        (await reader.get(`/v1/products/${productId}`)).body.data,
        (await ada.key.get(`/v1/products/${draft}`)).body.data,
        (await reader.get(`/v1/purchases/${orderId}`)).body.data.product,
        (await reader.get("/v1/purchases")).body.data[0].product,
      ];
      const cards = [...listed, ...own, ...similar, entry.product].filter(
        ({ author }) => author.id === ada.id,
      );
      assert.equal(cards.length, 5);
      return [...cards, ...details].map(({ author: { handle, avatar } }) =>
        JSON.stringify({ handle, avatar }),
      );
    };
    const shown = async () => [...new Set(await authors())].map((text) => JSON.parse(text));
    assert.deepEqual(await shown(), [{ handle: null, avatar: null }]);
    await change(ada, { handle: "ada-on-cards" });
    assert.deepEqual(await shown(), [{ handle: "ada-on-cards", avatar: null }]);
    const bytes = await picture({ red: 11 });
    const { data } = (await send(ada.session, "/v1/account/avatar", { name: "a.png", bytes })).body;
    assert.ok(data.url.startsWith(`${market.origin}/avatars/`), data.url);
    assert.deepEqual(await shown(), [{ handle: "ada-on-cards", avatar: data }]);
    const later = await createDraft(ada.key);
    const { author } = (await ada.key.get(`/v1/products/${later}`)).body.data;
    assert.deepEqual([author.handle, author.avatar], ["ada-on-cards", data]);
    await ada.key.delete(`/v1/products/${later}`);
    assert.equal((await ada.session.delete("/v1/account/avatar")).status, 200);
    assert.deepEqual(await shown(), [{ handle: "ada-on-cards", avatar: null }]);
  });

  test("filter author: a handle in any case works as the id, for lists, facets and the own products", async () => {
    const ada = await createPerson();
    const productId = await createProduct(ada.key, { tags: ["by-handle"] });
    await createDraft(ada.key);
    await change(ada, { handle: "ada-filter" });
    const list = async (client: Client, author: string) =>
      (await client.get(`/v1/products?author=${author}`)).body;
    for (const author of ["ada-filter", "Ada-Filter", ada.id]) {
      assert.deepEqual(
        (await list(buyer, author)).data.map(({ id }: { id: string }) => id),
        [productId],
      );
      assert.equal((await list(ada.key, author)).meta.total, 2, "the own list has every status");
      const facets = (await buyer.get(`/v1/products/facets?author=${author}`)).body.data;
      assert.deepEqual(facets.tag, [{ value: "by-handle", count: 1 }]);
    }
    for (const nobody of ["nobody-at-all", "admin", "%F0%9F%98%80"])
      assert.deepEqual((await list(buyer, nobody)).data, [], nobody);
  });
});
