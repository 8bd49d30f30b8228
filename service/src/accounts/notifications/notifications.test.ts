import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { notificationKinds } from "@stoa/contract";
import { emailsToUser, registerAccount, uniqueEmail } from "../../../test/emails.ts";
import { buyProduct, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { lastOf, notificationsOf, titlesOf } from "../../../test/notifications.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUserId } from "../people/users.ts";
import { kinds } from "./kinds.ts";
import { deleteOldNotifications } from "./notifications.ts";
import { notifyAccount } from "./notify-account.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller", name: "Grace" });
  buyer = await market.createUser({ name: "Ada" });
});
after(() => market.close());

/** A user with a session and this many unread notifications, one a second. */
async function hasUnread(count: number): Promise<Client> {
  const { ctx } = market.service;
  const { userId } = await market.createUser();
  for (let n = 0; n < count; n++) {
    market.clock.forward(1_000);
    await notifyAccount(ctx, ctx.db, {
      userId,
      kind: "api_key.created",
      subjectId: `key_${n}`,
      data: { name: `Key ${n}` },
    });
  }
  return market.createSession(userId);
}

const markRead = async (who: Client, body: object): Promise<number> => {
  const reply = await who.post("/v1/notifications/read", body);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data.unreadCount;
};

suite("GET /v1/notifications", () => {
  test("a sale, a review and the reply: who, what and how much; never an email address", async () => {
    const productId = await createProduct(seller, { title: "Poet", price: 10.99 });
    const orderId = await buyProduct(buyer, productId);
    const path = `/v1/products/${productId}/reviews`;
    const { id: reviewId } = (await buyer.post(path, { rating: 5, comment: "Good." })).body.data;
    await seller.post(`${path}/${reviewId}/reply`, { comment: "Thank you." });
    await seller.post(`${path}/${reviewId}/reply`, { comment: "Thank you all." });
    const [review, sale] = await notificationsOf(seller);
    assert.deepEqual(
      { ...sale, id: "" },
      {
        id: "",
        kind: "sale.completed",
        title: "Ada bought Poet for $10.99",
        text: null,
        url: `/studio/sales/${orderId}`,
        subject: { type: "order", id: orderId },
        readAt: null,
        createdAt: market.clock.now.toISOString(),
      },
    );
    assert.deepEqual([review!.title, review!.subject.id], ["Ada gave Poet 5 stars", reviewId]);
    assert.deepEqual(await titlesOf(buyer), ["Grace replied to your review of Poet"]);
    assert.equal((await lastOf(buyer, "review.replied")).url, `/p/poet-${productId}`);
    assert.ok(!(await seller.get("/v1/notifications")).text.includes("@example.com"));
  });

  test("pages, filter unread and the count of unread ones", async () => {
    const user = await hasUnread(3);
    const page = await user.get("/v1/notifications?limit=2&page=2");
    const [oldest] = page.body.data;
    assert.equal(oldest.title, "The API key Key 0 was created");
    assert.deepEqual([page.body.meta.total, page.body.meta.unreadCount], [3, 3]);
    await markRead(user, { ids: [oldest.id] });
    const { meta } = (await user.get("/v1/notifications")).body;
    assert.deepEqual([meta.total, meta.unreadCount], [3, 2]);
    const unread = await notificationsOf(user, "&unread=true");
    assert.deepEqual(
      unread.map(({ subject }) => subject.id),
      ["key_2", "key_1"],
    );
    assert.deepEqual(await notificationsOf(await market.createUser()), []);
  });

  test("a key without permissions beside one: reads the list as it reads the account", async () => {
    const user = await market.createUser({ permissions: ["products:read"] });
    assert.equal((await user.get("/v1/notifications")).status, 200);
    assertError(await market.as(null).get("/v1/notifications"), 401, "INVALID_API_KEY");
  });

  test("the same change twice, and twice at once: one notification", async () => {
    const { ctx } = market.service;
    const user = await market.createUser();
    const twice = {
      userId: user.userId,
      kind: "api_key.created",
      subjectId: "key_1",
      data: { name: "A" },
    } as const;
    await Promise.all([1, 2, 3].map(() => notifyAccount(ctx, ctx.db, twice)));
    await notifyAccount(ctx, ctx.db, twice);
    assert.equal((await notificationsOf(user)).length, 1);
  });

  test("a rolled back change: no notification", async () => {
    const { ctx } = market.service;
    const user = await market.createUser();
    const change = ctx.db.transaction().execute(async (tx) => {
      await notifyAccount(ctx, tx, {
        userId: user.userId,
        kind: "api_key.created",
        subjectId: "key_1",
        data: { name: "A" },
      });
      throw new Error("rolled back");
    });
    await assert.rejects(change, /rolled back/);
    assert.deepEqual(await notificationsOf(user), []);
  });

  test("texts with control, bidirectional and unpaired characters, and long ones: one clean line", async () => {
    const { ctx } = market.service;
    const user = await market.createUser();
    const name = `a\0b\u202ec\ud800d\ne${"x".repeat(1_000_000)}`;
    await notifyAccount(ctx, ctx.db, {
      userId: user.userId,
      kind: "api_key.created",
      subjectId: "key_1",
      data: { name },
    });
    const [title] = await titlesOf(user);
    assert.match(title!, /^The API key a bcd ex+ was created$/);
    assert.ok(title!.length < 600);
  });
});

suite("POST /v1/notifications/read", () => {
  test("ids: only one's own, unknown and read ones are skipped", async () => {
    const [user, other] = [await hasUnread(2), await hasUnread(1)];
    const [newest] = await notificationsOf(user);
    const [others] = await notificationsOf(other);
    const ids = [newest!.id, others!.id, "ntf_nothing", "prod_1"];
    assert.equal(await markRead(user, { ids }), 1);
    const { readAt } = (await notificationsOf(user))[0]!;
    assert.equal(readAt, market.clock.now.toISOString());
    market.clock.forward(1_000);
    assert.equal(await markRead(user, { ids }), 1);
    assert.equal((await notificationsOf(user))[0]!.readAt, readAt, "read once");
    assert.equal((await notificationsOf(other))[0]!.readAt, null);
  });

  test("before: the list that was shown, not what came later", async () => {
    const user = await hasUnread(3);
    const [, shown] = await notificationsOf(user);
    assert.equal(await markRead(user, { before: shown!.createdAt }), 1);
    assert.equal(await markRead(user, { before: "2020-01-01T00:00:00Z" }), 1);
    assert.equal(await markRead(user, { before: "2099-01-01T00:00:00+02:00" }), 0);
  });

  test("both, neither, nothing in ids, a malformed time: 400; a key: 403", async () => {
    const user = await hasUnread(1);
    const before = market.clock.now.toISOString();
    const post = (body: object) => user.post("/v1/notifications/read", body);
    assertError(await post({}), 400, "INVALID_REQUEST", "ids");
    assertError(await post({ ids: ["ntf_1"], before }), 400, "INVALID_REQUEST", "before");
    assertError(await post({ ids: [] }), 400, "INVALID_REQUEST", "ids");
    assertError(await post({ before: "yesterday" }), 400, "INVALID_REQUEST", "before");
    const { key } = await market.createUser();
    assertError(await market.as(key).post("/v1/notifications/read", { before }), 403, "UNAUTHORIZED");
  });
});

suite("PATCH /v1/account/notifications", () => {
  const path = "/v1/account/notifications";
  const change = (who: Client, kinds: object, headers = {}) => who.patch(path, { kinds }, headers);

  test("a kind that was switched off: a notification without an email; other kinds stay", async () => {
    const session = await market.createSession(seller.userId);
    const productId = await createProduct(seller, { title: "Muse", price: 8 });
    const sales: Client[] = [];
    const request = async () => {
      const who = await market.createUser({ name: "Ada" });
      sales.push(who);
      const orderId = await buyProduct(who, productId);
      await who.get(`/v1/products/${productId}`);
      const reply = await who.post(`/v1/purchases/${orderId}/refund`, { reason: "Not for me." });
      assert.equal(reply.body.data.status, "pending", reply.text);
    };
    const emails = async () =>
      (await emailsToUser(market, seller.userId)).filter(
        ({ subject }) => subject === "Refund requested: Muse",
      );
    await request();
    assert.equal((await emails()).length, 1);
    const off = await change(session, { "sale.refund_requested": { email: false } });
    assert.deepEqual(off.body.data.kinds["sale.refund_requested"], { email: false, canChangeEmail: true });
    assert.deepEqual(off.body.data.kinds["sale.refunded"], { email: true, canChangeEmail: true });
    await request();
    assert.equal((await emails()).length, 1);
    const asked = (await notificationsOf(seller)).filter(({ kind }) => kind === "sale.refund_requested");
    assert.deepEqual(
      asked.map(({ title }) => title),
      Array(2).fill("Ada requests a refund of $8.00 for Muse"),
    );
    assert.match(
      asked[0]!.text!,
      /^Approve or reject it by \d+ \w+ 2026; then it is approved automatically\.$/,
    );
    await change(session, { "sale.refund_requested": { email: true } });
    await request();
    assert.equal((await emails()).length, 2);
    for (const who of sales) await refundEverything(market, who);
    const [refunded] = await notificationsOf(sales[0]!);
    assert.deepEqual(
      [refunded!.title, refunded!.kind],
      ["$8.00 for Muse was refunded to you", "purchase.refunded"],
    );
  });

  test("emails about security and kinds without an email: 422, and the whole change is undone", async () => {
    const session = await market.createSession((await market.createUser()).userId);
    const both = { "payout.completed": { email: false }, "api_key.created": { email: false } };
    assertError(await change(session, both), 422, "VALIDATION_ERROR", "kinds.api_key.created.email");
    const without = { "sale.completed": { email: true } };
    assertError(await change(session, without), 422, "VALIDATION_ERROR", "kinds.sale.completed.email");
    const { kinds: after } = (await session.get(path)).body.data;
    assert.deepEqual(after["payout.completed"], { email: true, canChangeEmail: true });
    assert.deepEqual(after["api_key.created"], { email: true, canChangeEmail: false });
    assert.deepEqual(after["sale.completed"], { email: false, canChangeEmail: false });
    assert.equal((await change(session, { "api_key.created": { email: true } })).status, 200);
  });

  test("an unknown kind or field: 400; a key: 403; an old ETag: 412", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    assertError(await change(session, { "sale.imagined": { email: false } }), 400, "INVALID_REQUEST");
    assertError(await change(session, { "sale.refunded": { push: true } }), 400, "INVALID_REQUEST");
    assertError(await change(user, {}), 403, "UNAUTHORIZED");
    const read = await user.get(path);
    const etag = { "if-match": read.headers.get("etag")! };
    const off = { "sale.refunded": { email: false } };
    assert.equal((await change(session, off, etag)).status, 200);
    assertError(await change(session, off, etag), 412, "PRECONDITION_FAILED");
  });
});

suite("security", () => {
  test("a key, a password and a sign-in by another browser; the first sign-in and a known browser: none", async () => {
    const address = uniqueEmail();
    const session = await registerAccount(market, address, "correct horse battery");
    assert.deepEqual(await titlesOf(session), []);
    const logIn = async (userAgent: string) => {
      const body = { email: address, password: "correct horse battery" };
      const reply = await market.as(null).post("/api/auth/login", body, { "user-agent": userAgent });
      assert.equal(reply.status, 200, reply.text);
      return market.as(reply.body.sessionToken);
    };
    await logIn("Firefox");
    const second = await logIn("Firefox");
    const created = await second.post("/v1/api-keys", { name: "CI", permissions: { "products:read": true } });
    assert.equal(created.status, 201, created.text);
    const changed = await second.put("/v1/account/password", {
      currentPassword: "correct horse battery",
      password: "another horse battery",
    });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(await titlesOf(second), [
      "Your password was changed",
      "The API key CI was created",
      "New sign-in to your account",
    ]);
    assert.match((await lastOf(second, "session.created")).text!, /^By password from \S+ with Firefox\.$/);
  });
});

suite("the life of a notification", () => {
  test("after 90 days it is deleted", async () => {
    const user = await hasUnread(1);
    market.clock.forward(89 * DAY_MS);
    await deleteOldNotifications(market.service.ctx);
    const count = async () =>
      (await market.query("select from notifications where user_id = $1", [user.userId])).rows.length;
    assert.equal(await count(), 1);
    market.clock.forward(2 * DAY_MS);
    await deleteOldNotifications(market.service.ctx);
    assert.equal(await count(), 0);
  });

  test("its account closes: erased, and no later one is written; others' notifications lose the name", async () => {
    const { ctx } = market.service;
    const leaver = await market.createUser({ name: "Leaver" });
    const author = await market.createUser({ role: "seller" });
    await buyProduct(leaver, await createProduct(author, { title: "Poet", price: 1 }));
    assert.deepEqual(await titlesOf(author), ["Leaver bought Poet for $1.00"]);
    const session = await market.createSession(leaver.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    assert.equal(closed.status, 200, closed.text);
    assert.deepEqual(await titlesOf(author), ["Closed account bought Poet for $1.00"]);
    const { userId } = leaver;
    await notifyAccount(ctx, ctx.db, {
      userId,
      kind: "plan.changed",
      subjectId: toUserId(userId),
      data: { from: "a", to: "b" },
    });
    // A change that was in progress during the closing.
    await market.query(
      `insert into notifications (id, user_id, kind, subject_id, occurrence, data, created_at)
       values (gen_random_uuid(), $1, 'plan.changed', 'x', '', '{}', now())`,
      [userId],
    );
    await deleteOldNotifications(ctx);
    const { rows } = await market.query("select from notifications where user_id = $1 or actor_id = $1", [
      userId,
    ]);
    assert.equal(rows.length, 0);
  });

  test("each kind has words", () => {
    assert.deepEqual(Object.keys(kinds).sort(), [...notificationKinds].sort());
  });
});
