import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { rolePermissions, roles } from "@stoa/contract";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

async function hasPerson(name: string): Promise<{ key: Client; session: Client }> {
  const key = await market.createUser({ name });
  return { key, session: await market.createSession(key.userId) };
}

const cardOf = async (reader: Client, productId: string) => {
  const { data } = (await reader.get("/v1/products?limit=100")).body;
  return data.find(({ id }: { id: string }) => id === productId);
};

suite("GET and PATCH /account", () => {
  test("GET with any key: the user and the permissions of the role", async () => {
    for (const role of roles) {
      const reader = await market.createUser({ name: "Ada", role, plan: "pro", permissions: [] });
      const { data } = (await reader.get("/v1/account")).body;
      assert.match(data.email, /@example\.com$/);
      assert.deepEqual(data, {
        id: toId("usr", reader.userId),
        email: data.email,
        name: "Ada",
        bio: "",
        handle: null,
        avatar: null,
        links: [],
        role,
        permissions: rolePermissions[role],
        plan: "pro",
        emailVerified: true,
        verified: false,
        twoFactor: { enabled: false },
        refundDays: 14,
        refundFailedRuns: false,
        commissionBasisPoints: 1_000,
        country: null,
        createdAt: market.clock.now.toISOString(),
        view: null,
      });
    }
  });

  test("PATCH: needs a session, an API key is refused", async () => {
    const { key, session } = await hasPerson("Ada");
    const details = assertError(await key.patch("/v1/account", { name: "Eve" }), 403, "UNAUTHORIZED");
    assert.equal(details.required, "session");
    const reply = await session.patch("/v1/account", {
      name: "  Ada Lovelace ",
      bio: "Engines.",
      refundDays: 30,
    });
    assert.equal(reply.status, 200, reply.text);
    const { name, bio, refundDays } = reply.body.data;
    assert.deepEqual([name, bio, refundDays], ["Ada Lovelace", "Engines.", 30]);
    assert.deepEqual((await key.get("/v1/account")).body.data, reply.body.data);
  });

  test("a country: stays until it is removed", async () => {
    const { session } = await hasPerson("Ada");
    await session.patch("/v1/account", { country: "GB" });
    await session.patch("/v1/account", { bio: "Engines." });
    assert.equal((await session.get("/v1/account")).body.data.country, "GB");
    await session.patch("/v1/account", { country: null });
    assert.equal((await session.get("/v1/account")).body.data.country, null);
  });

  test("PATCH: changes only the sent fields", async () => {
    const { session } = await hasPerson("Ada");
    await session.patch("/v1/account", { bio: "Engines." });
    await session.patch("/v1/account", { refundDays: 0 });
    const { name, bio, refundDays } = (await session.get("/v1/account")).body.data;
    assert.deepEqual([name, bio, refundDays], ["Ada", "Engines.", 0]);
  });

  for (const [field, value] of [
    ["name", ""],
    ["name", "   "],
    ["name", "x".repeat(101)],
    ["bio", "x".repeat(2_001)],
    ["refundDays", 1],
    ["refundDays", "14"],
    ["commissionBasisPoints", -1],
    ["commissionBasisPoints", 10_001],
    ["commissionBasisPoints", 0.5],
    ["country", "Germany"],
    ["country", "de"],
    ["country", "XX"],
    ["email", "eve@example.com"],
    ["role", "admin"],
    ["plan", "enterprise"],
    ["verified", true],
    ["emailVerified", true],
  ] as const) {
    test(`${field} = ${JSON.stringify(value).slice(0, 20)}: refused`, async () => {
      const { session } = await hasPerson("Ada");
      assertError(await session.patch("/v1/account", { [field]: value }), 400, "INVALID_REQUEST", field);
      assert.equal((await session.get("/v1/account")).body.data.name, "Ada");
    });
  }

  test("an outdated If-Match: refused", async () => {
    const { session } = await hasPerson("Ada");
    const etag = (await session.get("/v1/account")).headers.get("etag")!;
    const changed = await session.patch("/v1/account", { bio: "One." }, { "if-match": etag });
    assert.equal(changed.status, 200);
    const late = await session.patch("/v1/account", { bio: "Two." }, { "if-match": etag });
    assertError(late, 412, "PRECONDITION_FAILED");
    const again = { "if-match": changed.headers.get("etag")! };
    assert.equal((await session.patch("/v1/account", { bio: "Two." }, again)).status, 200);
    assert.equal((await session.get("/v1/account", { "if-none-match": etag })).status, 200);
  });
});

suite("an author's new name", () => {
  test("at once on cards and details in every state, purchases and reviews", async () => {
    const { key, session } = await hasPerson("Old");
    const buyer = await market.createUser({ name: "Buyer" });
    const [published, draft] = [await createProduct(key), await createDraft(key)];
    const orderId = await buyProduct(buyer, published);
    await session.patch("/v1/account", { name: "New" });
    assert.equal((await cardOf(buyer, published)).author.name, "New");
    const own = (await key.get("/v1/products?author=me")).body.data;
    assert.deepEqual(
      new Set(own.map((card: { author: { name: string } }) => card.author.name)),
      new Set(["New"]),
    );
    for (const id of [published, draft])
      assert.equal((await key.get(`/v1/products/${id}`)).body.data.author.name, "New");
    assert.equal((await buyer.get(`/v1/purchases/${orderId}`)).body.data.product.author.name, "New");
  });

  test("a new ETag for readers, the same updatedAt", async () => {
    const { key, session } = await hasPerson("Old");
    const reader = await market.createUser();
    const path = `/v1/products/${await createProduct(key)}`;
    const before = await reader.get(path);
    const unchanged = { "if-none-match": before.headers.get("etag")! };
    assert.equal((await reader.get(path, unchanged)).status, 304);
    for (const change of [
      { name: "New" },
      { bio: "Words." },
      { refundDays: 7 },
      { commissionBasisPoints: 5 },
    ]) {
      const etag = (await reader.get(path)).headers.get("etag")!;
      market.clock.forward(1_000);
      await session.patch("/v1/account", change);
      const after = await reader.get(path, { "if-none-match": etag });
      assert.equal(after.status, 200, JSON.stringify(change));
      assert.equal(after.body.data.updatedAt, before.body.data.updatedAt);
    }
    const { author, refundDays } = (await reader.get(path)).body.data;
    assert.deepEqual([author.name, author.bio, refundDays], ["New", "Words.", 7]);
  });

  test("changes nothing else of a card, for any text", async () => {
    const { key, session } = await hasPerson('Old "quoted", {braced}');
    const odd = ',"author":{"id":"usr_x"}} \\",\\"author\\":';
    const id = await createProduct(key, { title: odd, description: odd, tags: ['","author":'] });
    const before = await cardOf(key, id);
    for (const name of ['New "quoted", {braced}', odd.slice(0, 100), "Ł\u{1f600}", "\\"]) {
      await session.patch("/v1/account", { name });
      assert.deepEqual(await cardOf(key, id), { ...before, author: { ...before.author, name: name.trim() } });
    }
  });

  test("concurrent product changes: the new name wins", async () => {
    const { key, session } = await hasPerson("Old");
    const first = await createProduct(key);
    await Promise.all([
      session.patch("/v1/account", { name: "New" }),
      ...Array.from({ length: 8 }, () => createDraft(key)),
      key.patch(`/v1/products/${first}`, { title: "Another title" }),
      key.post(`/v1/products/${first}/unpublish`),
    ]);
    const { data } = (await key.get("/v1/products?author=me&limit=100")).body;
    assert.equal(data.length, 9);
    for (const card of data) assert.equal(card.author.name, "New");
  });

  test("receipts stay: they name the seller of that time", async () => {
    const { key, session } = await hasPerson("The Seller");
    const buyer = await hasPerson("The Buyer");
    const orderId = await buyProduct(buyer.key, await createProduct(key));
    await session.patch("/v1/account", { name: "Somebody Else" });
    await buyer.session.patch("/v1/account", { name: "Another Name" });
    const { receipt } = (await buyer.key.get(`/v1/purchases/${orderId}`)).body.data;
    const page = (await market.as(null).get(receipt.url)).text;
    assert.match(page, /The Seller/);
    assert.match(page, /The Buyer/);
    assert.doesNotMatch(page, /Somebody Else|Another Name/);
  });
});

test("PATCH /account: an audit entry with field names and no values; none without a change", async () => {
  const { session } = await hasPerson("Ada");
  await session.patch("/v1/account", { name: "NAMEMARK", bio: "BIOMARK" });
  await session.patch("/v1/account", { name: "NAMEMARK" });
  const { rows } = await market.query("select action, details from audit_log where actor_id = $1", [
    session.userId,
  ]);
  assert.deepEqual(rows, [{ action: "account.changed", details: { fields: ["name", "bio"] } }]);
});

test("a name, title or tag with control, bidirectional or tag characters is refused; emoji with joiners are accepted", async () => {
  const user = await market.createUser();
  const session = await market.createSession(user.userId);
  const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
  for (const hidden of [
    "\u202eevil",
    "a\u2066b",
    "a\u0007b",
    "a\u{e0041}b",
    "a\u200bb",
    "two\nlines",
    "a\u2028b",
  ]) {
    assertError(
      await session.patch("/v1/account", { name: `Ada ${hidden} x` }),
      400,
      "INVALID_REQUEST",
      "name",
    );
    const product = { ...haiku, title: `Haiku ${hidden} x` };
    assertError(await user.post("/v1/products", product), 400, "INVALID_REQUEST", "title");
    const tagged = { ...haiku, tags: ["good", `tag ${hidden} x`] };
    assertError(await user.post("/v1/products", tagged), 400, "INVALID_REQUEST", "tags[1]");
  }
  assert.equal((await session.patch("/v1/account", { name: `Ada ${family}` })).status, 200);
  assert.equal((await user.post("/v1/products", { ...haiku, title: `Family ${family}` })).status, 201);
});

test("a prompt with a variable that no request can send, or with more than 100, is refused", async () => {
  const user = await market.createUser();
  const many = Array.from({ length: 101 }, (_, at) => `{{v${at}}}`).join(" ");
  for (const content of ["Say {{__proto__}}", many])
    assertError(await user.post("/v1/products", { ...haiku, content }), 400, "INVALID_REQUEST", "content");
});
