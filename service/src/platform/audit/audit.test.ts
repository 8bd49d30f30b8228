import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { enableTwoFactor } from "../../../test/authenticator.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { createFirstAdminLink } from "../../backoffice/admin/first-admin.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { toId } from "../../core/ids.ts";
import { recordAudit } from "./audit.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ name: "Admin", role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

const entries = async (query = "") => (await admin.get(`/v1/admin/audit?${query}`)).body;
const actionsOf = async (query: string) =>
  (await entries(query)).data.map(({ action }: { action: string }) => action);

/** Writes entries of one actor, a minute apart. */
async function writeEntries(actions: string[]): Promise<string> {
  const { ctx } = market.service;
  const { userId } = await market.createUser({ name: "Doer" });
  for (const action of actions) {
    market.clock.forward(60_000);
    const source = { ip: "192.0.2.7", userAgent: "curl/8", requestId: "req-1" };
    const target = { type: "thing", id: `thing_${action}` };
    await recordAudit(ctx, ctx.db, { actorId: userId, action, target, source, details: { a: 1 } });
  }
  return toId("usr", userId);
}

suite("the audit log", () => {
  test("an entry: actor, action, target, time and origin", async () => {
    const actor = await writeEntries(["thing.made"]);
    const { data, meta } = await entries(`actor=${actor}`);
    assert.match(data[0].id, /^aud_/);
    assert.deepEqual(data, [
      {
        id: data[0].id,
        actor: { id: actor, name: "Doer" },
        action: "thing.made",
        target: { type: "thing", id: "thing_thing.made" },
        ip: "192.0.2.7",
        userAgent: "curl/8",
        requestId: "req-1",
        details: { a: 1 },
        createdAt: market.clock.now.toISOString(),
      },
    ]);
    assert.equal(meta.total, 1);
  });

  test("an operator's or the service's action: no actor", async () => {
    const { ctx } = market.service;
    await recordAudit(ctx, ctx.db, { actorId: null, action: "operator.spoke", source: null });
    const [entry] = (await entries("action=operator.spoke")).data;
    assert.deepEqual([entry.actor, entry.target, entry.ip, entry.requestId], [null, null, null, null]);
  });

  test("GET /admin/audit: newest first, with pages", async () => {
    const actor = await writeEntries(["a.one", "a.two", "a.three"]);
    assert.deepEqual(await actionsOf(`actor=${actor}`), ["a.three", "a.two", "a.one"]);
    assert.deepEqual(await actionsOf(`actor=${actor}&limit=2&page=2`), ["a.one"]);
  });

  test("filters: actor, action, noun, target and time, combined", async () => {
    const actor = await writeEntries(["b.one", "b.two", "bb.one"]);
    const at = (minutesAgo: number) =>
      new Date(market.clock.now.getTime() - minutesAgo * 60_000).toISOString();
    assert.deepEqual(await actionsOf(`actor=${actor}&action=b.one`), ["b.one"]);
    assert.deepEqual(await actionsOf(`actor=${actor}&action=b.*`), ["b.two", "b.one"]);
    assert.deepEqual(await actionsOf("target=thing_bb.one"), ["bb.one"]);
    assert.deepEqual(await actionsOf(`actor=${actor}&from=${at(1)}`), ["bb.one", "b.two"]);
    assert.deepEqual(await actionsOf(`actor=${actor}&to=${at(1)}`), ["b.one"]);
    assert.deepEqual(await actionsOf(`actor=${actor}&action=b.*&from=${at(1)}&to=${at(0)}`), ["b.two"]);
    assert.deepEqual(await actionsOf("actor=usr_x"), []);
    assert.deepEqual(await actionsOf("target=nothing"), []);
    assert.deepEqual(await actionsOf("action=%25"), []);
  });

  test("an invalid time: refused", async () => {
    assertError(await admin.get("/v1/admin/audit?from=yesterday"), 400, "INVALID_REQUEST", "from");
  });

  for (const statement of [
    "update audit_log set action = 'nothing.happened'",
    "update audit_log set details = '{}' where false or true",
    "delete from audit_log",
    "truncate audit_log",
  ]) {
    test(`append-only in the database: ${statement.split(" ")[0]} is refused`, async () => {
      await writeEntries(["c.one"]);
      const before = (await market.query("select * from audit_log order by id")).rows;
      await assert.rejects(market.query(statement), /append-only/);
      assert.deepEqual((await market.query("select * from audit_log order by id")).rows, before);
    });
  }

  test("action and entry: one transaction", async () => {
    const { ctx } = market.service;
    const undone = ctx.db.transaction().execute(async (tx) => {
      await recordAudit(ctx, tx, { actorId: null, action: "undone.deed", source: null });
      throw new Error("undone");
    });
    await assert.rejects(undone, /undone/);
    assert.deepEqual(await actionsOf("action=undone.deed"), []);
  });

  test("a closed account: its entries stay, without a name", async () => {
    const user = await market.createUser({ name: "LEAVERMARK" });
    const session = await market.createSession(user.userId);
    const { email, id } = (await session.get("/v1/account")).body.data;
    await session.patch("/v1/account", { bio: "Words." });
    await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    const { data } = await entries(`actor=${id}`);
    assert.deepEqual(
      data.map(({ action, actor }: { action: string; actor: { name: string } }) => [action, actor.name]),
      [
        ["account.closed", "Closed account"],
        ["account.changed", "Closed account"],
      ],
    );
    const { rows } = await market.query("select a::text as row from audit_log a");
    assert.ok(rows.every(({ row }) => !row.includes("LEAVERMARK") && !row.includes(email)));
  });
});

suite("audited refusals", () => {
  const refusalsOf = async (action: string, since: number) => {
    const { rows } = await market.query(
      "select action, target_id, ip, details from audit_log where action = $1 order by id offset $2",
      [action, since],
    );
    return rows.map(({ target_id, details }) => [target_id, details.failures]);
  };
  const countOf = async (action: string) => (await refusalsOf(action, 0)).length;
  const linesOf = (action: string) =>
    market.logs.map((line) => JSON.parse(line)).filter((line) => line.action === action);

  test("wrong passwords: the 1st and 10th with their account, and the lock; each in the log with address and account", async () => {
    const user = await market.createUser();
    const id = toId("usr", user.userId);
    const { email } = (await user.get("/v1/account")).body.data;
    const logIn = (address: string) =>
      market.as(null).post("/api/auth/login", { email: address, password: "not the password" });
    for (let tries = 0; tries < 10; tries++) assertError(await logIn(email), 401, "INVALID_CREDENTIALS");
    for (let tries = 0; tries < 3; tries++) assertError(await logIn(email), 429, "RATE_LIMIT_EXCEEDED");
    await logIn("nobody@example.com");
    assert.deepEqual(await refusalsOf("sign_in.password_refused", 0), [
      [id, 1],
      [id, 10],
      [null, 1],
    ]);
    assert.deepEqual(await refusalsOf("sign_in.locked", 0), [[id, 1]]);
    const lines = linesOf("sign_in.password_refused");
    assert.deepEqual(
      lines.map(({ ip, account }) => [ip, account]),
      [...Array.from({ length: 10 }, () => ["127.0.0.1", id]), ["127.0.0.1", null]],
    );
    market.clock.forward(16 * 60_000);
    await logIn(email);
    assert.deepEqual(await refusalsOf("sign_in.password_refused", 3), [[id, 1]], "a new window");
  });

  test("wrong links and challenges: counted by network", async () => {
    for (let tries = 0; tries < 6; tries++) {
      await market.as(null).post("/api/auth/verify", { token: "x".repeat(43) });
      await market.as(null).post("/api/auth/two-factor", { challenge: "x".repeat(43), code: "123456" });
    }
    assert.deepEqual(await refusalsOf("sign_in.link_refused", 0), [
      [null, 1],
      [null, 10],
    ]);
  });

  test("a wrong current password, and access that needs an administrator", async () => {
    const user = await market.createUser();
    const id = toId("usr", user.userId);
    const session = await market.createSession(user.userId);
    await session.put("/v1/account/password", { password: "a good enough one", currentPassword: "wrong" });
    assert.deepEqual(await refusalsOf("password.refused", 0), [[id, 1]]);
    const before = await countOf("admin.refused");
    for (const client of [session, user]) assert.equal((await client.get("/v1/admin/users")).status, 403);
    assert.deepEqual(await refusalsOf("admin.refused", before), [[id, 1]]);
    const { endpoint, msg } = linesOf("admin.refused").at(-1);
    assert.deepEqual(
      [endpoint, msg],
      ["GET /admin/users", "a request was refused: it needs an administrator"],
    );
  });

  test("a network that is blocked from sign-in", async () => {
    const limited = await openMarket({
      config: {
        planConfig: { ...builtInPlans, failedCredentials: { requests: 2, seconds: 600 } },
      },
    });
    try {
      for (let tries = 0; tries < 3; tries++)
        await limited.as(null).post("/api/auth/verify", { token: "x".repeat(43) });
      const { rows: found } = await becomes(
        () => limited.query("select ip from audit_log where action = 'sign_in.network_barred'"),
        ({ rows }) => rows.length > 0,
      );
      assert.deepEqual(found, [{ ip: "127.0.0.1" }]);
    } finally {
      await limited.close();
    }
  });
});

test("every audited action: no secret in any entry", async () => {
  const { ctx } = market.service;
  const user = await market.createUser({ name: "Somebody" });
  const session = await market.createSession(user.userId);
  const app = await enableTwoFactor(market, session);
  const password = "correct horse battery STAPLEMARK";
  await session.put("/v1/account/password", { password });
  await session.patch("/v1/account", { name: "Another", bio: "BIOMARK" });
  await session.delete("/v1/account/sessions");
  const link = await createFirstAdminLink(ctx);
  const user2 = await market.createUser({ name: "Target" });
  const path = `/v1/admin/users/${toId("usr", user2.userId)}`;
  await admin.patch(path, { role: "seller", plan: "pro" });
  await admin.post(`${path}/ban`, { reason: "Spam" });
  await admin.post(`${path}/unban`);
  const productId = await createProduct(user2, { content: "CONTENTMARK about {{topic}}" });
  await admin.patch(`/v1/products/${productId}`, { content: "CONTENTMARK again about {{topic}}" });
  await buyProduct(user, productId);
  const { rows } = await market.query("select a::text as row from audit_log a");
  const log = rows.map(({ row }) => row).join("\n");
  for (const action of ["user.changed", "user.banned", "product.updated", "account.changed", "two_factor"])
    assert.ok(log.includes(action), `${action} was done`);
  const secrets = [
    user.key,
    session.key,
    admin.key,
    session.key.split(".")[2]!,
    app.secret,
    ...app.backupCodes,
  ];
  for (const secret of [
    ...secrets,
    password,
    "STAPLEMARK",
    "CONTENTMARK",
    "BIOMARK",
    ...(link ? [link] : []),
  ])
    assert.ok(!log.includes(secret), `${secret} is in the audit log`);
  assert.doesNotMatch(log, /stoa_(test|live)_|\beyJ|\$argon2|otpauth:/);
});
