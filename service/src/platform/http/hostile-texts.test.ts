import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Ada" });
  buyer = await market.createUser({ name: "Bo" });
});
after(() => market.close());

const TAG = "\u{e0041}";
const INVISIBLE: Record<string, string> = {
  "a control character": "\u001b[31m",
  "a bidirectional mark": "\u202e",
  "a tag character": TAG,
  "a zero-width space": "\u200b",
  "a soft hyphen": "\u00ad",
  "a filler": "\u3164",
  "selectors in a row": "\u{e0100}\u{e0101}",
  "joiners in a row": "\u202e\u200d\u200c",
};
/** The expected stored text: without the escape character, a terminal sequence is plain text. */
const shown = (text: string) => text.replace("\u001b", "").replace(/[^\x20-\x7e\n\t]/gu, "");

suite("texts of several lines: control characters are removed", () => {
  const hidden = Object.values(INVISIBLE).join("");
  const pasted = `One${hidden}\r\nTwo\tthree`;
  const stored = `One${shown(hidden)}\nTwo\tthree`;

  for (const [what, characters] of Object.entries(INVISIBLE))
    test(what, async () => {
      const reply = await seller.post("/v1/products", { ...haiku, description: `x${characters}y\nz` });
      const { description } = (await seller.get(`/v1/products/${reply.body.data.id}`)).body.data;
      assert.equal(description, `x${shown(characters)}y\nz`);
    });

  test("in the fields of a product and an account", async () => {
    const variables = [{ name: "topic", description: pasted, enum: [pasted] }, { name: "language" }];
    const id = await createDraft(seller, {
      description: pasted,
      preview: pasted,
      changelog: pasted,
      variables,
    });
    const product = (await seller.get(`/v1/products/${id}`)).body.data;
    assert.deepEqual(
      [product.description, product.contentPreview, product.changelog, product.variables[0]],
      [stored, stored, stored, { name: "topic", description: stored, enum: [stored], required: true }],
    );
    const session = await market.createSession(seller.userId);
    assert.equal((await session.patch("/v1/account", { bio: pasted })).body.data.bio, stored);
  });

  test("in reviews, replies, reports and refunds", async () => {
    const id = await createProduct(seller);
    const orderId = await buyProduct(buyer, id);
    const review = (await buyer.post(`/v1/products/${id}/reviews`, { rating: 4, comment: pasted })).body.data;
    const path = `/v1/products/${id}/reviews/${review.id}`;
    const reply = (await seller.post(`${path}/reply`, { comment: pasted })).body.data.reply;
    assert.deepEqual([review.comment, reply.comment], [stored, stored]);
    const refund = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: pasted, details: pasted });
    assert.equal(refund.status, 201, refund.text);
    const { reason, details } = refund.body.data;
    assert.deepEqual([reason, details], [stored, stored]);
  });

  test("joiners and selectors of emoji and scripts stay", async () => {
    const bio = "❤️‍🔥 1️⃣ 👨‍👩‍👧 🏳️‍🌈 می‌خواهم क्‍ष 葛\u{e0100}";
    const session = await market.createSession(seller.userId);
    assert.equal((await session.patch("/v1/account", { bio, name: bio })).status, 200);
    assert.equal((await session.get("/v1/account")).body.data.bio, bio);
    assert.equal((await session.patch("/v1/account", { name: "Ada" })).status, 200);
  });
});

test("content: invisible characters stay, with a warning", async () => {
  const content = `Write about {{topic}}.${TAG}`;
  const { data } = (await seller.post("/v1/products", { ...haiku, content })).body;
  assert.deepEqual(
    data.warnings.map(({ field }: { field: string }) => field),
    ["content"],
  );
  assert.match(data.warnings[0].reason, /invisible characters/);
  assert.equal((await seller.get(`/v1/products/${data.id}`)).body.data.content, content);
});

suite("a name or title that was stored before this rule", () => {
  const hostile = `=<b>x</b>\r\nBcc: eve@example.com\u001b[31m\u202e${TAG}`;
  const line = "=<b>x</b> Bcc: eve@example.com [31m";
  const escaped = "=&lt;b&gt;x&lt;/b&gt; Bcc: eve@example.com [31m";
  let orderId: string;

  before(async () => {
    const id = await createProduct(seller);
    orderId = await buyProduct(buyer, id);
    await market.query("update users set name = $1 where name in ('Ada', 'Bo')", [hostile]);
    await market.query("update products set title = $1 where id = $2", [hostile, toUuid("prod", id)]);
    await market.query(
      "update orders set product_title = $1, buyer_name = $1, seller_name = $1 where id = $2",
      [hostile, toUuid("ord", orderId)],
    );
  });

  test("one visible line in the list of models", async () => {
    const [model] = (await buyer.get("/v1/openai/models")).body.data;
    assert.deepEqual([model.name, model.owned_by], [line, line]);
  });

  test("no formula in a spreadsheet", async () => {
    const { text } = await seller.get("/v1/analytics/customers/export");
    assert.equal(text.split("\r\n")[1]!.split(",")[1], `'${line}`);
  });

  test("no HTML and no second line in a receipt", async () => {
    const { receipt } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    const page = await (await fetch(new URL(receipt.url, market.origin))).text();
    assert.equal(page.split(`<bdi>${escaped}</bdi>`).length - 1, 3, page);
    assert.doesNotMatch(page, /[^\P{C}\n]/u);
  });

  test("no header and no paragraph in an email", async () => {
    await market.query("update entitlements set used_at = now() where order_id = $1", [
      toUuid("ord", orderId),
    ]);
    const refund = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: hostile });
    assert.equal(refund.status, 201, refund.text);
    const [letter] = await emailsToUser(market, seller.userId);
    assert.equal(letter!.subject, `Refund requested: ${line}`);
    // In the reason, the sanitizer made a space of the line end and removed the escape.
    const withoutEscape = (text: string) => text.replace(" [31m", "[31m");
    assert.ok(letter!.text.includes(`\n\n${withoutEscape(line)}\n\n`), letter!.text);
    assert.ok(letter!.html.includes(`>${withoutEscape(escaped)}</p>`), letter!.html);
    for (const text of [letter!.text, letter!.html]) assert.doesNotMatch(text, /[^\P{C}\n]/u);
  });
});

test("texts of users: never start a line of the log", async () => {
  const forged = '\n{"level":"info","msg":"forged"}\r\u001b[2K\u2028';
  await market.as(null).post("/api/auth/login", { email: `a${forged}@example.com`, password: forged });
  await market
    .as(null)
    .get(`/v1/products/${encodeURIComponent(forged)}?search=${encodeURIComponent(forged)}`);
  await seller.post("/v1/products", { ...haiku, title: forged });
  for (const entry of market.logs) {
    assert.ok(entry.endsWith("\n") && !/[\p{Cc}\u2028]/u.test(entry.slice(0, -1)), entry);
    assert.ok(!entry.includes("forged"), entry);
  }
});
