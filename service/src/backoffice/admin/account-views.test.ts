import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { ACCOUNT_VIEW_MINUTES, endpoints } from "@stoa/contract";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";
import { READABLE_IN_VIEW } from "../../platform/http/account-view.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const idOf = ({ userId }: Client) => toId("usr", userId);

async function openAdmin(): Promise<Client> {
  const { userId } = await market.createUser({ name: "Ida", role: "admin" });
  return market.createSession(userId, { secondFactor: true });
}

const startView = (admin: Client, userId: string, reason = "A payout is missing") =>
  admin.put("/v1/admin/view", { userId, reason });
const endView = (admin: Client) => admin.request("DELETE", "/v1/admin/view");
const viewOf = async (admin: Client) => (await admin.get("/v1/account")).body.data.view;

async function openView(name = "Ada") {
  const [admin, user] = [await openAdmin(), await market.createUser({ name })];
  const reply = await startView(admin, idOf(user));
  assert.equal(reply.status, 200, reply.text);
  return { admin, user };
}

const entriesOf = async (target: string, action = "user.*") => {
  const reader = await openAdmin();
  const { data } = (await reader.get(`/v1/admin/audit?target=${target}&action=${action}`)).body;
  return data as { action: string; actor: { id: string }; details: Record<string, unknown> }[];
};

suite("a view of another account", () => {
  test("reads as the user; start and end are audited, and the owner gets a notification", async () => {
    const { admin, user } = await openView("Ada");
    const product = await createProduct(await market.createUser());
    await buyProduct(user, product);
    const { id, name, role, view } = (await admin.get("/v1/account")).body.data;
    assert.deepEqual([id, name, role], [idOf(user), "Ada", "user"]);
    assert.deepEqual([view.user.id, view.isOver], [idOf(user), false]);
    const purchases = (await admin.get("/v1/purchases")).body.data;
    assert.equal(purchases.length, 1);
    assert.deepEqual([purchases[0].downloadUrl, purchases[0].receipt.url], [null, null]);
    assert.equal((await endView(admin)).status, 200);
    assert.equal((await admin.get("/v1/account")).body.data.name, "Ida");
    assert.equal(await viewOf(admin), null);
    const [ended, started] = await entriesOf(idOf(user));
    assert.deepEqual([started?.action, ended?.action], ["user.viewed", "user.view_ended"]);
    assert.deepEqual([started?.actor.id, ended?.actor.id], [idOf(admin), idOf(admin)]);
    assert.equal(started?.details["reason"], "A payout is missing");
    const { data: notifications } = (await user.get("/v1/notifications")).body;
    const [notification] = notifications.filter(({ kind }: { kind: string }) => kind === "account.viewed");
    assert.match(notification.text, /Read-only, until/);
    assert.ok(!JSON.stringify(notifications).includes("payout is missing"), "the reason is for the log");
  });

  test("every endpoint that changes something or is not listed: refused, with the reason", async () => {
    const { admin } = await openView();
    const guarded = endpoints.filter(({ access }) => access.who !== "public" && access.who !== "admin");
    for (const { name, method, base, path } of guarded) {
      if (name === "admin.view.end") continue;
      const reply = await admin.request(method, base + path.replace(/:\w+/g, "nothing"));
      if (READABLE_IN_VIEW.has(name)) {
        assert.ok(reply.status !== 403 || reply.body.error.details?.required !== "own-account", name);
        continue;
      }
      const roleMissing = reply.body?.error?.details?.required?.includes(":");
      if (roleMissing) continue;
      const error = reply.body?.error;
      assert.equal(reply.status, 403, `${name}: ${reply.text}`);
      // The OpenAI endpoints have their own form of errors.
      if (base === "/v1" && error.details)
        assert.equal(error.details.reason, method === "GET" ? "hidden_in_view" : "read_only_view", name);
    }
  });

  test("the list of readable endpoints: reads that exist, none of administrators", () => {
    const reads = endpoints.filter(({ method, access }) => method === "GET" && access.who !== "admin");
    const names = new Set(reads.map(({ name }) => name));
    for (const name of READABLE_IN_VIEW) assert.ok(names.has(name), name);
  });

  test("administration: closed until the end", async () => {
    const { admin, user } = await openView();
    assertError(await admin.get("/v1/admin/users"), 403, "UNAUTHORIZED");
    assertError(await startView(admin, idOf(user)), 403, "UNAUTHORIZED");
    await endView(admin);
    assert.equal((await admin.get("/v1/admin/users")).status, 200);
  });

  test("a bought product: content and files hidden, not revealed, no view counted", async () => {
    const { admin, user } = await openView();
    const productId = await createProduct(await market.createUser());
    await buyProduct(user, productId);
    const { content, files, access } = (await admin.get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual([content, files, access.owned], [null, null, true]);
    const { body } = await user.get(`/v1/products/${productId}?content=false`);
    assert.equal(body.data.access.revealForfeitsInstantRefund, true);
  });

  test("the user's own draft: visible, its content hidden", async () => {
    const { admin, user } = await openView();
    const draft = await createDraft(user);
    const reply = await admin.get(`/v1/products/${draft}`);
    assert.deepEqual([reply.status, reply.body.data.content], [200, null]);
    assertError(await admin.patch(`/v1/products/${draft}`, { title: "Taken" }), 403, "UNAUTHORIZED");
  });

  test(`after ${ACCOUNT_VIEW_MINUTES} minutes: reads as the administrator, and changes nothing until the end`, async () => {
    const { admin, user } = await openView();
    const target = `/v1/admin/users/${idOf(user)}/end-sessions`;
    market.clock.forward(ACCOUNT_VIEW_MINUTES * 60_000);
    assert.equal((await admin.get("/v1/account")).body.data.name, "Ida");
    assert.deepEqual([(await viewOf(admin)).isOver, (await viewOf(admin)).user.id], [true, idOf(user)]);
    assert.equal(assertError(await admin.post(target), 403, "UNAUTHORIZED").reason, "view_is_over");
    assert.equal((await endView(admin)).status, 200);
    assert.equal((await admin.post(target)).status, 200);
  });

  test("a closed account, or one that became an administrator's: the view is over", async () => {
    for (const change of ["closed_at = now()", "role = 'admin'"]) {
      const { admin, user } = await openView();
      await market.query(`update users set ${change} where id = $1`, [user.userId]);
      assert.equal((await viewOf(admin)).isOver, true, change);
      await market.query("update users set closed_at = null, role = 'user' where id = $1", [user.userId]);
      assert.equal((await endView(admin)).status, 200);
    }
  });

  test("an administrator who loses the role: reads as themselves", async () => {
    const { admin } = await openView();
    await market.query("update users set role = 'user' where id = $1", [admin.userId]);
    const { name, view } = (await admin.get("/v1/account")).body.data;
    assert.deepEqual([name, view.isOver], ["Ida", true]);
  });

  test("other sessions of the administrator, and the user's own: untouched", async () => {
    const { admin, user } = await openView("Ada");
    const other = await market.createSession(admin.userId, { secondFactor: true });
    assert.equal((await other.get("/v1/account")).body.data.name, "Ida");
    assert.equal((await other.get("/v1/admin/users")).status, 200);
    const own = await market.createSession(user.userId);
    assert.equal((await own.patch("/v1/account", { bio: "Mine." })).status, 200);
    assert.equal(await viewOf(own), null);
  });

  test("quota and request log: the administrator's", async () => {
    const { admin, user } = await openView();
    const own = await market.createSession(user.userId);
    const usedBy = async () => (await own.get("/v1/account/usage")).body.data.sessionWindows[0].used;
    const before = await usedBy();
    await admin.get("/v1/categories");
    await admin.get("/v1/categories");
    assert.equal(await usedBy(), before);
  });
});

suite("PUT /admin/view", () => {
  test("refused: oneself, an administrator, a closed account, an unknown id, no reason", async () => {
    const [admin, other] = [await openAdmin(), await openAdmin()];
    assertError(await startView(admin, idOf(admin)), 422, "VALIDATION_ERROR");
    assertError(await startView(admin, idOf(other)), 422, "VALIDATION_ERROR");
    assertError(await startView(admin, "usr_nothing"), 404, "USER_NOT_FOUND");
    const user = await market.createUser();
    assertError(await startView(admin, idOf(user), ""), 400, "INVALID_REQUEST");
    await market.query("update users set closed_at = now() where id = $1", [user.userId]);
    assertError(await startView(admin, idOf(user)), 409, "INVALID_STATE");
    await market.query("update users set closed_at = null where id = $1", [user.userId]);
  });

  test("parallel starts: one succeeds and is audited", async () => {
    const [admin, user] = [await openAdmin(), await market.createUser()];
    const replies = await Promise.all(Array.from({ length: 8 }, () => startView(admin, idOf(user))));
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    for (const { status, text } of replies) assert.ok([200, 403, 409].includes(status), text);
    assert.equal((await entriesOf(idOf(user), "user.viewed")).length, 1);
  });

  test("parallel ends: one succeeds and is audited", async () => {
    const { admin, user } = await openView();
    const replies = await Promise.all(Array.from({ length: 8 }, () => endView(admin)));
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    for (const { status, text } of replies) assert.ok([200, 409].includes(status), text);
    assert.equal((await entriesOf(idOf(user), "user.view_ended")).length, 1);
  });

  test("DELETE /admin/view without a view: 409", async () => {
    assertError(await endView(await openAdmin()), 409, "INVALID_STATE");
  });
});
