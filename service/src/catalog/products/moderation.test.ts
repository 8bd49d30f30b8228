import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { jsonLines, sendImport } from "../../../test/import-export.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { notificationsOf } from "../../../test/notifications.ts";
import { run } from "../../../test/runs.ts";
import { picture, sendFile, sendImage, uploadFile } from "../../../test/uploads.ts";
import { toId } from "../../core/ids.ts";
import type { Email } from "../../platform/email/render-email.ts";

let market: Market;
let seller: Client;
let admin: Client;
before(async () => {
  market = await openMarket({ config: { moderation: true } });
  seller = await market.createUser({ name: "Seller" });
  admin = await market.createSession((await market.createUser({ name: "Mod", role: "admin" })).userId, {
    secondFactor: true,
  });
});
after(() => market.close());

const read = async (who: Client, id: string) => (await who.get(`/v1/products/${id}`)).body.data;
const tagOf = async (id: string) => (await admin.get(`/v1/products/${id}`)).headers.get("etag")!;
const judge = (id: string, verb: string, body?: unknown, headers = {}) =>
  admin.post(`/v1/admin/products/${id}/${verb}`, body, headers);
const approve = async (id: string) => judge(id, "approve", undefined, { "if-match": await tagOf(id) });

async function hasPending(author = seller, input = {}): Promise<string> {
  const id = await createDraft(author, input);
  const reply = await author.post(`/v1/products/${id}/publish`);
  assert.equal(reply.body.data.status, "pending_review", reply.text);
  return id;
}

async function hasApproved(author = seller, input = {}): Promise<string> {
  const id = await hasPending(author, input);
  assert.equal((await approve(id)).body.data.status, "published");
  return id;
}

const listed = async (query: string) => (await admin.get(`/v1/admin/products?${query}`)).body;
const idsOf = async (query: string) => (await listed(query)).data.map(({ id }: { id: string }) => id);
const giveBadge = (who: Client, verified: boolean) =>
  admin.patch(`/v1/admin/users/${toId("usr", who.userId)}`, { verified });

suite("a product in moderation", () => {
  test("neither listed nor for sale; published as event when approved", async () => {
    const id = await hasPending();
    const stranger = await market.createUser();
    assertError(await stranger.get(`/v1/products/${id}`), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.post("/v1/purchases", { productId: id }), 404, "PRODUCT_NOT_FOUND");
    const hasEvent = async () => (await seller.get("/v1/events")).text.includes(id);
    assert.equal(await hasEvent(), false);
    const { status, publishedAt } = (await approve(id)).body.data;
    assert.deepEqual([status, publishedAt], ["published", market.clock.now.toISOString()]);
    assert.ok(await hasEvent());
    assert.equal((await stranger.get(`/v1/products/${id}`)).status, 200);
  });

  test("published by an administrator for its seller: waits too, approval is the one way", async () => {
    const id = await createDraft(seller);
    const reply = await admin.post(`/v1/products/${id}/publish`);
    assert.equal(reply.body.data.status, "pending_review");
  });

  test("must be complete, and cannot lose a required field while it waits", async () => {
    const bare = await createDraft(seller, { description: "" });
    assertError(await seller.post(`/v1/products/${bare}/publish`), 422, "VALIDATION_ERROR", "description");
    const id = await hasPending();
    const reply = await seller.patch(`/v1/products/${id}`, { description: "" });
    assertError(reply, 422, "VALIDATION_ERROR", "description");
  });

  test("with files: approved although their links have expired", async () => {
    const id = await createDraft(seller);
    await uploadFile(seller, id);
    await seller.post(`/v1/products/${id}/publish`);
    const seen = { "if-match": await tagOf(id) };
    market.clock.forward(40 * 60_000);
    const reply = await judge(id, "approve", undefined, seen);
    assert.equal(reply.body.data?.status, "published", reply.text);
  });

  test("changed by its seller after the moderator read it: approval refused", async () => {
    const id = await hasPending();
    const seen = { "if-match": await tagOf(id) };
    await seller.patch(`/v1/products/${id}`, {
      content: "Something else about {{topic}} in {{language=English}}",
    });
    assertError(await judge(id, "approve", undefined, seen), 412, "PRECONDITION_FAILED");
    assert.equal((await read(admin, id)).status, "pending_review");
    assert.equal((await approve(id)).status, 200);
  });

  test("withdrawn, changed and submitted again after the moderator read it: approval refused", async () => {
    const id = await hasPending();
    const seen = { "if-match": await tagOf(id) };
    await seller.post(`/v1/products/${id}/withdraw`);
    await seller.patch(`/v1/products/${id}`, { title: "Another title" });
    await seller.post(`/v1/products/${id}/publish`);
    assertError(await judge(id, "approve", undefined, seen), 412, "PRECONDITION_FAILED");
  });

  test("approved with its files under the current ETag, whose links are old", async () => {
    const id = await createDraft(seller);
    await uploadFile(seller, id);
    await seller.post(`/v1/products/${id}/publish`);
    const etag = await tagOf(id);
    market.clock.forward(3_600_000);
    assert.notEqual(await tagOf(id), etag, "other links");
    const approved = await judge(id, "approve", undefined, { "if-match": etag });
    assert.equal(approved.status, 200, approved.text);
  });

  test("approval without If-Match: approves the current state", async () => {
    for (const headers of [{}, { "if-match": "*" }]) {
      const id = await hasPending();
      await seller.patch(`/v1/products/${id}`, { title: "Changed since" });
      const reply = await judge(id, "approve", undefined, headers);
      assert.equal(reply.status, 200, reply.text);
      assert.equal((await read(admin, id)).title, "Changed since");
    }
  });

  test("with files, approved by an old ETag of the same state: succeeds", async () => {
    const id = await createDraft(seller);
    await uploadFile(seller, id);
    await seller.post(`/v1/products/${id}/publish`);
    const seen = { "if-match": await tagOf(id) };
    market.clock.forward(40 * 60_000);
    assert.equal((await judge(id, "approve", undefined, seen)).status, 200);
    assertError(await judge(id, "suspend", { reasonCode: "spam" }, seen), 412, "PRECONDITION_FAILED");
  });

  test("changed and approved at once: published only as the moderator read it", async () => {
    for (let round = 0; round < 8; round++) {
      const id = await hasPending();
      const seen = { "if-match": await tagOf(id) };
      const [approved, changed] = await Promise.all([
        judge(id, "approve", undefined, seen),
        seller.patch(`/v1/products/${id}`, { title: "Never seen" }),
      ]);
      const { status, title } = await read(admin, id);
      if (approved.status === 200) {
        assert.deepEqual([status, title], ["published", haiku.title]);
        assertError(changed, 409, "INVALID_STATE");
      } else {
        assertError(approved, 412, "PRECONDITION_FAILED");
        assert.deepEqual([status, title], ["pending_review", "Never seen"]);
      }
    }
  });

  test("parallel decisions of moderators: one wins, one email", async () => {
    const id = await hasPending(seller, { title: "Contested" });
    const seen = { "if-match": await tagOf(id) };
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        at % 2 ? judge(id, "approve", undefined, seen) : judge(id, "reject", { reason: "No." }, seen),
      ),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    const messages = await emailsToUser(market, seller.userId);
    assert.equal(messages.filter(({ subject }) => subject.endsWith("Contested")).length, 1);
  });

  test("its seller's account closes: a draft again, in no list", async () => {
    const leaver = await market.createUser();
    const id = await hasPending(leaver);
    const session = await market.createSession(leaver.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    assert.equal((await read(admin, id)).status, "draft");
    assert.ok(!(await idsOf("status=pending_review&limit=100")).includes(id));
  });
});

test("approved, rejected twice, suspended and reinstated: a notification each, with the reason", async () => {
  const author = await market.createUser({ name: "Author" });
  const id = await hasPending(author, { title: "Poet" });
  const reject = (reason: string) => judge(id, "reject", { reason });
  assert.equal((await reject("Too short.")).status, 200);
  await author.post(`/v1/products/${id}/publish`);
  assert.equal((await reject("Still too short.")).status, 200);
  await author.post(`/v1/products/${id}/publish`);
  await approve(id);
  assert.equal((await judge(id, "suspend", { reasonCode: "spam" })).status, 200);
  assert.equal((await judge(id, "reinstate")).status, 200);
  const list = await notificationsOf(author);
  assert.deepEqual(
    list.map(({ title, text }) => [title, text]),
    [
      ["The suspension of Poet ended", "Publish it again to sell it."],
      ["Poet is suspended and off sale", "Moderators found that it is spam."],
      ["Poet is approved and on sale", null],
      ["Poet was rejected", "Still too short."],
      ["Poet was rejected", "Too short."],
    ],
  );
  assert.equal(list[0]!.url, `/studio/products/${id}`);
});

suite("the seller's emails", () => {
  const lastLetter = async () => {
    const [{ subject, text }] = (await emailsToUser(market, seller.userId)) as [Email, ...Email[]];
    return { subject, text: unwrapLines(text) };
  };

  test("an approval", async () => {
    await hasApproved(seller, { title: "Approved one" });
    const { subject, text } = await lastLetter();
    assert.equal(subject, "On sale: Approved one");
    assert.match(text, /“Approved one”. It is on sale now/);
  });

  test("a rejection: with its reason, also in the product", async () => {
    const id = await hasPending(seller, { title: "Rejected one" });
    await judge(id, "reject", { reason: "It rhymes.\n\nHaikus do not." });
    assert.match(
      (await lastLetter()).text,
      /It rhymes. Haikus do not. Change the product and publish it again/,
    );
    const { status, moderation } = await read(seller, id);
    const at = market.clock.now.toISOString();
    assert.deepEqual(
      [status, moderation],
      ["rejected", { reasonCode: null, reason: "It rhymes.\n\nHaikus do not.", at }],
    );
    await seller.patch(`/v1/products/${id}`, { description: "No rhymes." });
    assert.ok((await read(seller, id)).moderation, "until it is handed in again");
    await seller.post(`/v1/products/${id}/publish`);
    assert.equal((await read(seller, id)).moderation, null);
  });

  test("a suspension: with its code, and its end", async () => {
    const id = await hasApproved(seller, { title: "Suspended one" });
    await judge(id, "suspend", { reasonCode: "misleading" });
    assert.match((await lastLetter()).text, /because its description is misleading. It is off sale/);
    assert.equal((await judge(id, "reinstate")).body.data.status, "unpublished");
    assert.match((await lastLetter()).subject, /Suspension ended/);
    const { status, moderation } = await read(seller, id);
    assert.deepEqual([status, moderation], ["unpublished", null]);
  });

  test("a closed account: no email", async () => {
    const leaver = await market.createUser();
    const id = await hasApproved(leaver);
    const session = await market.createSession(leaver.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    const count = async () => (await market.query("select from emails")).rowCount;
    const known = await count();
    assert.equal((await judge(id, "suspend", { reasonCode: "spam" })).status, 200);
    assert.equal(await count(), known);
  });

  test("strangers and buyers: see no reason", async () => {
    const id = await hasApproved();
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await judge(id, "suspend", { reasonCode: "misleading", reason: "SECRETMARK" });
    const reply = await buyer.get(`/v1/products/${id}`);
    assert.deepEqual([reply.body.data.status, reply.body.data.moderation], ["suspended", null]);
    assert.doesNotMatch(reply.text, /SECRETMARK|misleading/);
    assertError(await buyer.get(`/v1/products/${id}/history`), 403, "UNAUTHORIZED");
  });

  test('a reason: required to reject, and with the code "other"', async () => {
    const id = await hasPending();
    assertError(await judge(id, "reject"), 400, "INVALID_REQUEST", "reason");
    assertError(await judge(id, "reject", { reason: "  " }), 400, "INVALID_REQUEST", "reason");
    assertError(await judge(id, "suspend", {}), 400, "INVALID_REQUEST", "reasonCode");
    assertError(await judge(id, "suspend", { reasonCode: "taste" }), 400, "INVALID_REQUEST", "reasonCode");
    assertError(await judge(id, "suspend", { reasonCode: "other" }), 400, "INVALID_REQUEST", "reason");
    assert.equal((await judge(id, "suspend", { reasonCode: "other", reason: "Taste." })).status, 200);
  });
});

suite("a product approved by moderators", () => {
  test("its seller can change only the price and the commission", async () => {
    const id = await hasApproved();
    const terms = { price: 9, commissionBasisPoints: 50 };
    assert.equal((await seller.patch(`/v1/products/${id}`, terms)).status, 200);
    for (const change of [
      { title: "New" },
      { content: "New {{topic}} in {{language=English}}" },
      { price: 8, tags: ["new"] },
    ]) {
      const reply = await seller.patch(`/v1/products/${id}`, change);
      const details = assertError(reply, 409, "INVALID_STATE");
      assert.equal(details.current, "published");
      assert.ok(details.allowed.includes("unpublished") && !details.allowed.includes("published"));
    }
    assert.equal((await seller.patch(`/v1/products/${id}`, { title: haiku.title })).status, 200, "no change");
    assert.equal((await admin.patch(`/v1/products/${id}`, { title: "Mended" })).status, 200);
    assert.equal((await read(seller, id)).price, 9);
  });

  test("files and images stay, in an import too", async () => {
    const id = await createDraft(seller);
    const file = await uploadFile(seller, id);
    const image = (await sendImage(seller, id, { bytes: await picture() })).body.data;
    await seller.post(`/v1/products/${id}/publish`);
    await approve(id);
    for (const reply of [
      await sendFile(seller, id, { bytes: "# Another\n" }),
      await sendImage(seller, id, { bytes: await picture({ red: 1 }) }),
      await seller.delete(`/v1/products/${id}/files/${file.id}`),
      await seller.delete(`/v1/products/${id}/images/${image.id}`),
    ])
      assert.equal(assertError(reply, 409, "INVALID_STATE").current, "published");
    const imported = await sendImport(
      seller,
      jsonLines({ id, content: "Unseen {{topic}} in {{language=English}}" }),
    );
    assert.equal(assertError(imported, 422, "VALIDATION_ERROR", "product").line, 1);
    const { version, files, images } = await read(seller, id);
    assert.deepEqual([version, files.length, images.length], ["1.0.0", 1, 1]);
  });

  test("buyers get this version until moderators approve the next", async () => {
    const id = await hasApproved();
    const buyer = await market.createUser();
    const orderId = await buyProduct(buyer, id);
    await seller.post(`/v1/products/${id}/unpublish`);
    const changed = await seller.patch(`/v1/products/${id}`, {
      content: "Unseen {{topic}} in {{language=English}}",
    });
    assert.equal(changed.body.data.version, "1.1.0");
    const path = `/v1/products/${id}/versions`;
    const versionsFor = async (who: Client) =>
      (await who.get(path)).body.data.map(({ version }: { version: string }) => version);

    const buys = async () => (await read(buyer, id)).version;
    assert.equal(await buys(), "1.0.0");
    assert.deepEqual([await versionsFor(buyer), await versionsFor(seller)], [["1.0.0"], ["1.1.0", "1.0.0"]]);
    assertError(await buyer.get(`${path}/1.1.0`), 404, "VERSION_NOT_FOUND");
    const pinned = { productId: id, options: { version: "1.1.0" } };
    assertError(await run(buyer, pinned), 422, "VALIDATION_ERROR", "options.version");
    const order = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.deepEqual([order.entitlement.version, order.entitlement.latestVersion], ["1.0.0", "1.0.0"]);
    assert.doesNotMatch((await market.as(null).get(order.downloadUrl)).text, /Unseen/);

    await seller.post(`/v1/products/${id}/publish`);
    assert.equal(await buys(), "1.0.0", "while it waits");
    await approve(id);
    assert.equal(await buys(), "1.1.0");
    assert.equal((await run(buyer, pinned)).status, 200);
  });

  test("files of an unapproved version: hidden from buyers, by any link", async () => {
    const id = await hasApproved();
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await seller.post(`/v1/products/${id}/unpublish`);
    const file = await uploadFile(seller, id);
    const { links, now } = market.service.ctx;
    const path = `/v1/products/${id}/files/${file.id}/download/${toId("usr", buyer.userId)}`;
    const open = () => market.as(null).get(links.sign(path, new Date(now().getTime() + 60_000)));
    assertError(await open(), 403, "UNAUTHORIZED");
    await seller.post(`/v1/products/${id}/publish`);
    await approve(id);
    assert.equal((await open()).status, 200);
  });

  test("a change by an administrator: reaches buyers at once", async () => {
    const id = await hasApproved();
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await admin.patch(`/v1/products/${id}`, { content: "Mended {{topic}} in {{language=English}}" });
    assert.equal((await read(buyer, id)).version, "1.1.0");
  });

  test("a change by a verified seller: reaches buyers at once", async () => {
    const trusted = await market.createUser();
    await giveBadge(trusted, true);
    const id = await createProduct(trusted);
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await trusted.patch(`/v1/products/${id}`, { content: "Next {{topic}} in {{language=English}}" });
    assert.equal((await read(buyer, id)).version, "1.1.0");
  });
});

suite("the verified badge", () => {
  test("its seller publishes without moderation; shown in every list, and audited", async () => {
    const trusted = await market.createUser({ name: "Trusted" });
    const waiting = await hasPending(trusted);
    assert.equal((await giveBadge(trusted, true)).body.data.verified, true);
    const id = await createProduct(trusted);
    const ownItems = (await trusted.get("/v1/products?author=me")).body.data;
    assert.deepEqual(
      ownItems.map(({ author }: { author: { verified: boolean } }) => author.verified),
      [true, true],
    );
    assert.equal((await read(trusted, id)).author.verified, true);
    assert.equal((await read(trusted, waiting)).status, "pending_review", "what waits goes on waiting");
    await giveBadge(trusted, false);
    assert.equal((await trusted.get("/v1/products?author=me")).body.data[0].author.verified, false);
    await hasPending(trusted);
    const { data } = (await admin.get(`/v1/admin/audit?target=${toId("usr", trusted.userId)}`)).body;
    assert.deepEqual(
      data.map(({ details }: { details: unknown }) => details),
      [
        { from: { verified: true }, to: { verified: false } },
        { from: { verified: false }, to: { verified: true } },
      ],
    );
  });
});

suite("a suspension as malicious or illegal", () => {
  for (const reasonCode of ["malicious", "illegal"]) {
    test(`${reasonCode}: buyers cannot run, read or download it, even deleted, until it is reinstated`, async () => {
      const id = await hasApproved();
      const buyer = await market.createUser();
      const orderId = await buyProduct(buyer, id);
      const { downloadUrl } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
      await judge(id, "suspend", { reasonCode });
      const assertWithheld = async () => {
        const { content, contentPreview, access } = await read(buyer, id);
        assert.deepEqual([content, contentPreview], [null, ""]);
        assert.deepEqual([access.owned, access.revealForfeitsInstantRefund], [true, false]);
        const [version] = (await buyer.get(`/v1/products/${id}/versions`)).body.data;
        assert.equal(version.readable, false);
        for (const reply of [
          await run(buyer, { productId: id }),
          await run(buyer, { productId: id, options: { version: "1.0.0" } }),
          await buyer.get(`/v1/products/${id}/versions/1.0.0`),
          await market.as(null).get(downloadUrl),
        ])
          assert.equal(assertError(reply, 409, "PRODUCT_UNAVAILABLE").reason, reasonCode);
        const { rows } = await market.query("select used_at from entitlements where buyer_id = $1", [
          buyer.userId,
        ]);
        assert.equal(rows[0].used_at, null, "what was not shown was not revealed");
      };
      await assertWithheld();
      assert.ok((await read(seller, id)).content, "its author may answer for it");
      await judge(id, "reinstate");
      assert.ok((await read(buyer, id)).content);
      await market.query("update entitlements set used_at = null where buyer_id = $1", [buyer.userId]);
      await seller.post(`/v1/products/${id}/publish`);
      await judge(id, "suspend", { reasonCode });
      await seller.delete(`/v1/products/${id}`);
      await assertWithheld();
      assert.equal(
        (await read(admin, id)).moderation.reasonCode,
        reasonCode,
        "deleting takes no reason away",
      );
    });
  }

  test("any other reason: buyers lose nothing", async () => {
    const id = await hasApproved();
    const buyer = await market.createUser();
    const orderId = await buyProduct(buyer, id);
    await judge(id, "suspend", { reasonCode: "infringing" });
    assert.equal((await read(buyer, id)).content, haiku.content);
    assert.equal((await run(buyer, { productId: id })).status, 200);
    const { downloadUrl } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.equal((await market.as(null).get(downloadUrl)).status, 200);
    const stranger = await market.createUser();
    assertError(await stranger.get(`/v1/products/${id}`), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.post("/v1/purchases", { productId: id }), 409, "PRODUCT_UNAVAILABLE");
  });
});

suite("GET /admin/products", () => {
  let author: Client;
  let products: string[];
  before(async () => {
    author = await market.createUser({ name: "Queued" });
    products = [];
    for (const title of ["Queue one", "Queue two 100%", "Queue three"]) {
      market.clock.forward(60_000);
      products.push(await hasPending(author, { title }));
    }
  });
  const by = () => `author=${toId("usr", author.userId)}`;

  test("the moderation queue: oldest submission first, a change does not move it", async () => {
    const [one, two, three] = products;
    market.clock.forward(60_000);
    await author.patch(`/v1/products/${one}`, { description: "Changed." });
    assert.deepEqual(await idsOf(`${by()}&status=pending_review&order=oldest`), [one, two, three]);
    assert.deepEqual(await idsOf(`${by()}&status=pending_review`), [three, two, one]);
    assert.deepEqual(await idsOf(`${by()}&order=oldest&limit=1&page=2`), [two]);
  });

  test("filters: status, seller, words of the title, id", async () => {
    const [, two] = products;
    assert.deepEqual(await idsOf(`${by()}&search=TWO`), [two]);
    assert.deepEqual(await idsOf(`search=100%25&${by()}`), [two]);
    assert.deepEqual(await idsOf(`search=%25&${by()}`), [two], "a sign like any other");
    assert.deepEqual(await idsOf(`search=_&${by()}`), []);
    assert.deepEqual(await idsOf(`search=${two}`), [two]);
    assert.deepEqual(await idsOf(`${by()}&status=published`), []);
    assert.deepEqual(await idsOf("author=nobody"), []);
    for (const search of ["%00", "%25%25", "_", "\\"])
      assert.ok((await admin.get(`/v1/admin/products?${by()}&search=${encodeURI(search)}`)).status < 500);
    assertError(await admin.get("/v1/admin/products?status=gone"), 400, "INVALID_REQUEST", "status");
  });

  test("an item: seller, reasons and history", async () => {
    const [one] = products;
    await judge(one!, "reject", { reason: "Too short." });
    market.clock.forward(60_000);
    await author.post(`/v1/products/${one}/publish`);
    const [{ seller: who, history, moderation, statusSince }] = (await listed(`search=${one}`)).data;
    assert.deepEqual(
      { ...who, email: null },
      {
        id: toId("usr", author.userId),
        name: "Queued",
        email: null,
        verified: false,
        bannedAt: null,
        products: { pending_review: 3 },
      },
    );
    assert.match(who.email, /@/);
    assert.deepEqual([moderation, statusSince], [null, market.clock.now.toISOString()]);
    assert.deepEqual(
      history.map(({ action, from, to, by, reason }: Record<string, unknown>) => [
        action,
        from,
        to,
        by,
        reason,
      ]),
      [
        ["product.submitted", "rejected", "pending_review", "author", null],
        ["product.rejected", "pending_review", "rejected", "moderator", "Too short."],
        ["product.submitted", "draft", "pending_review", "author", null],
      ],
    );
    const own = (await author.get(`/v1/products/${one}/history`)).body;
    assert.deepEqual([own.data, own.meta.total], [history, 3]);
    assert.doesNotMatch(
      JSON.stringify(own.data),
      new RegExp(toId("usr", admin.userId)),
      "no moderator is named",
    );
    assertError(await seller.get(`/v1/products/${one}/history`), 404, "PRODUCT_NOT_FOUND");
  });
});
