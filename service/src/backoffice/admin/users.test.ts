import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
});
beforeEach(async () => {
  await market.query("update users set role = 'user' where role = 'admin'");
  admin = await hasAdmin("Admin");
});
after(() => market.close());

async function hasAdmin(name: string): Promise<Client> {
  const { userId } = await market.createUser({ name, role: "admin" });
  return market.createSession(userId, { secondFactor: true });
}

const idOf = ({ userId }: { userId: string }) => toId("usr", userId);
const pathOf = (user: { userId: string }) => `/v1/admin/users/${idOf(user)}`;
const found = async (query: string) =>
  (await admin.get(`/v1/admin/users?${query}`)).body.data.map(({ id }: { id: string }) => id);

async function deedsTo(user: { userId: string }) {
  const { rows } = await market.query(
    "select actor_id as actor, action, details, ip from audit_log where target_id = $1 order by id",
    [idOf(user)],
  );
  return rows;
}

suite("GET /admin/users", () => {
  test("newest first, with pages", async () => {
    const [older, newer] = [await market.createUser(), await market.createUser()];
    const { body, headers } = await admin.get("/v1/admin/users?limit=2");
    assert.deepEqual(
      body.data.map(({ id }: { id: string }) => id),
      [idOf(newer), idOf(older)],
    );
    assert.ok(body.meta.total > 2);
    assert.match(headers.get("link")!, /rel="next"/);
  });

  test("by part of a name or address in any case, or by id", async () => {
    const ada = await market.createUser({ name: "Ada Lovelace" });
    await market.query("update users set email = 'ada@analytical.example' where id = $1", [ada.userId]);
    await market.createUser({ name: "Grace" });
    for (const search of ["lovelace", "LOVE", "Ada L", "analytical", "ADA@analytical.example", idOf(ada)])
      assert.deepEqual(await found(`search=${encodeURIComponent(search)}`), [idOf(ada)], search);
    assert.deepEqual(await found("search=nobody-is-called-so"), []);
  });

  test("% and _: plain characters", async () => {
    const odd = await market.createUser({ name: "100%_sure\\" });
    for (const search of ["100%", "%_s", "sure\\"])
      assert.deepEqual(await found(`search=${encodeURIComponent(search)}`), [idOf(odd)], search);
    assert.deepEqual(await found("search=1%25e"), []);
  });

  test("by role, plan and state, combined", async () => {
    const input = { name: "Filtered", role: "seller", plan: "business" } as const;
    const [active, banned] = [await market.createUser(input), await market.createUser(input)];
    await admin.post(`${pathOf(banned)}/ban`, { reason: "Spam" });
    const all = "search=Filtered&role=seller&plan=business";
    assert.deepEqual(await found(all), [idOf(banned), idOf(active)]);
    assert.deepEqual(await found(`${all}&status=active`), [idOf(active)]);
    assert.deepEqual(await found(`${all}&status=banned`), [idOf(banned)]);
    assert.deepEqual(await found(`${all}&status=closed`), []);
    assert.deepEqual(await found("search=Filtered&role=user"), []);
    assert.deepEqual(await found("search=Filtered&plan=free"), []);
  });

  test("one user: what administrators need, no secret", async () => {
    const user = await market.createUser({ name: "Ada", plan: "pro" });
    const { body, text } = await admin.get(pathOf(user));
    assert.deepEqual(body.data, {
      id: idOf(user),
      email: body.data.email,
      name: "Ada",
      bio: "",
      handle: null,
      avatar: null,
      links: [],
      role: "user",
      plan: "pro",
      quota: null,
      emailVerified: true,
      verified: false,
      refundDays: 14,
      refundFailedRuns: false,
      commissionBasisPoints: 1_000,
      country: null,
      bannedAt: null,
      banReason: null,
      closedAt: null,
      twoFactor: { enabled: false },
      createdAt: market.clock.now.toISOString(),
    });
    assert.doesNotMatch(text, /password|hash|secret/i);
  });

  test("an unknown id: 404 on every path", async () => {
    for (const id of ["x", "usr_", toId("usr", "01900000-0000-7000-8000-000000000000")]) {
      const path = `/v1/admin/users/${id}`;
      assertError(await admin.get(path), 404, "USER_NOT_FOUND");
      assertError(await admin.patch(path, { plan: "pro" }), 404, "USER_NOT_FOUND");
      assertError(await admin.post(`${path}/ban`, { reason: "x" }), 404, "USER_NOT_FOUND");
      assertError(await admin.post(`${path}/unban`), 404, "USER_NOT_FOUND");
      assertError(await admin.post(`${path}/end-sessions`), 404, "USER_NOT_FOUND");
    }
  });
});

suite("PATCH /admin/users/:userId", () => {
  test("role, plan and quota: apply to the next request, audited with old and new values", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    const quota = [{ requests: 5_000, seconds: 3_600 }];
    const change = { role: "seller", plan: "enterprise", quota, reason: "Agreed by mail" };
    const reply = await admin.patch(pathOf(user), change);
    assert.equal(reply.status, 200, reply.text);
    const { role, plan, quota: newQuota } = reply.body.data;
    assert.deepEqual([role, plan, newQuota], ["seller", "enterprise", quota]);
    const { data } = (await session.get("/v1/account")).body;
    assert.deepEqual([data.role, data.plan], ["seller", "enterprise"]);
    assert.ok(data.permissions.includes("manage:products"));
    assert.deepEqual(await deedsTo(user), [
      {
        actor: admin.userId,
        action: "user.changed",
        details: {
          from: { role: "user", plan: "free", quota: null },
          to: { role: "seller", plan: "enterprise", quota },
          reason: "Agreed by mail",
        },
        ip: "127.0.0.1",
      },
    ]);
  });

  test("custom rate limits: apply to the next request, one per window", async () => {
    const user = await market.createUser();
    const twice = [
      { requests: 5, seconds: 60 },
      { requests: 9, seconds: 60 },
    ];
    assertError(await admin.patch(pathOf(user), { quota: twice }), 400, "INVALID_REQUEST", "quota");
    await admin.patch(pathOf(user), { quota: [{ requests: 1, seconds: 60 }] });
    assert.equal((await user.get("/v1/account")).headers.get("x-ratelimit-limit"), "1");
    assertError(await user.get("/v1/account"), 429, "RATE_LIMIT_EXCEEDED");
  });

  test("a new plan: an event to the user", async () => {
    const user = await market.createUser();
    await admin.patch(pathOf(user), { plan: "pro" });
    const { data } = (await user.get("/v1/events?type=user.subscription.updated")).body;
    assert.deepEqual(
      data.map((event: { data: object }) => event.data),
      [
        {
          subscription: {
            userId: idOf(user),
            oldPlan: "free",
            newPlan: "pro",
            effectiveDate: market.clock.now.toISOString(),
          },
        },
      ],
    );
  });

  test("quota null: removes the custom quota", async () => {
    const user = await market.createUser();
    await admin.patch(pathOf(user), { quota: [{ requests: 1, seconds: 1 }] });
    assert.equal((await admin.patch(pathOf(user), { quota: null })).body.data.quota, null);
  });

  test("no difference: no change, no audit entry", async () => {
    const user = await market.createUser();
    const same = { role: "user", plan: "free", quota: null, reason: "None" };
    for (const change of [{}, same]) assert.equal((await admin.patch(pathOf(user), change)).status, 200);
    assert.deepEqual(await deedsTo(user), []);
    assert.deepEqual((await user.get("/v1/events")).body.data, []);
  });

  test("an outdated If-Match: refused", async () => {
    const user = await market.createUser();
    const etag = (await admin.get(pathOf(user))).headers.get("etag")!;
    const first = await admin.patch(pathOf(user), { plan: "pro" }, { "if-match": etag });
    assert.equal(first.status, 200);
    const late = await admin.patch(pathOf(user), { plan: "business" }, { "if-match": etag });
    assertError(late, 412, "PRECONDITION_FAILED");
    const next = { "if-match": first.headers.get("etag")! };
    assert.equal((await admin.patch(pathOf(user), { plan: "business" }, next)).status, 200);
  });

  test("administrators cannot demote or ban themselves", async () => {
    for (const reply of [
      await admin.patch(pathOf(admin), { role: "user" }),
      await admin.patch(pathOf(admin), { role: "seller", plan: "pro" }),
      await admin.post(`${pathOf(admin)}/ban`, { reason: "x" }),
    ])
      assertError(reply, 422, "VALIDATION_ERROR", "userId");
    assert.equal((await admin.get("/v1/account")).body.data.role, "admin");
  });

  for (const [what, unmake] of [
    ["demote", (by: Client, target: Client) => by.patch(pathOf(target), { role: "user" })],
    ["ban", (by: Client, target: Client) => by.post(`${pathOf(target)}/ban`, { reason: "Coup" })],
  ] as [string, (by: Client, target: Client) => Promise<Reply>][]) {
    test(`several administrators ${what} each other at once: one remains`, async () => {
      for (let round = 0; round < 5; round++) {
        const other = await hasAdmin("Other");
        const replies = await Promise.all([unmake(admin, other), unmake(other, admin)]);
        const { rows } = await market.query(
          "select id from users where role = 'admin' and banned_at is null and closed_at is null",
        );
        assert.equal(rows.length, 1, replies.map(({ text }) => text).join("\n"));
        admin = await market.createSession(rows[0].id, { secondFactor: true });
      }
    });
  }

  test("a demoted administrator: refused from the next request on", async () => {
    const other = await hasAdmin("Other");
    await admin.patch(pathOf(other), { role: "user" });
    assertError(await other.get("/v1/admin/users"), 403, "UNAUTHORIZED");
  });
});

suite("POST /admin/users/:userId/ban", () => {
  test("sessions and keys end at once, with the same answer as invalid ones", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    const reply = await admin.post(`${pathOf(user)}/ban`, { reason: "Sold stolen prompts" });
    assert.equal(reply.status, 200, reply.text);
    const { bannedAt, banReason } = reply.body.data;
    assert.deepEqual([bannedAt, banReason], [market.clock.now.toISOString(), "Sold stolen prompts"]);
    for (const client of [user, session]) {
      const refused = await client.get("/v1/account");
      assertError(refused, 401, "INVALID_API_KEY");
      assert.doesNotMatch(refused.text, /ban|stolen/);
    }
  });

  test("a reason is required; a second ban is refused", async () => {
    const user = await market.createUser();
    assertError(await admin.post(`${pathOf(user)}/ban`), 400, "INVALID_REQUEST", "reason");
    assertError(await admin.post(`${pathOf(user)}/ban`, { reason: " " }), 400, "INVALID_REQUEST", "reason");
    await admin.post(`${pathOf(user)}/ban`, { reason: "First" });
    const details = assertError(
      await admin.post(`${pathOf(user)}/ban`, { reason: "Second" }),
      409,
      "INVALID_STATE",
    );
    assert.deepEqual([details.current, details.allowed], ["banned", ["active"]]);
    assert.equal((await admin.get(pathOf(user))).body.data.banReason, "First");
  });

  test("unban: keys work again, sessions do not", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    assertError(await admin.post(`${pathOf(user)}/unban`), 409, "INVALID_STATE");
    await admin.post(`${pathOf(user)}/ban`, { reason: "Spam" });
    await market.createSession(user.userId);
    const { data } = (await admin.post(`${pathOf(user)}/unban`)).body;
    assert.deepEqual([data.bannedAt, data.banReason], [null, null]);
    assert.equal((await user.get("/v1/account")).status, 200);
    assertError(await session.get("/v1/account"), 401, "INVALID_API_KEY");
    const live = await market.query("select from sessions where user_id = $1 and ended_at is null", [
      user.userId,
    ]);
    assert.equal(live.rows.length, 0);
    assert.deepEqual(
      (await deedsTo(user)).map(({ action, details }) => [action, details]),
      [
        ["user.banned", { reason: "Spam", endedSessions: 1 }],
        ["user.unbanned", { reason: "Spam" }],
      ],
    );
  });

  test("products keep their state", async () => {
    const seller = await market.createUser();
    const productId = await createProduct(seller);
    await admin.post(`${pathOf(seller)}/ban`, { reason: "Spam" });
    assert.equal((await admin.get(`/v1/products/${productId}`)).body.data.status, "published");
  });
});

test("end-sessions of another user: with an audit entry; keys still work", async () => {
  const user = await market.createUser();
  const sessions = [await market.createSession(user.userId), await market.createSession(user.userId)];
  assert.deepEqual((await admin.post(`${pathOf(user)}/end-sessions`)).body.data, { ended: 2 });
  for (const session of sessions) assertError(await session.get("/v1/account"), 401, "INVALID_API_KEY");
  assert.equal((await user.get("/v1/account")).status, 200);
  assert.deepEqual(
    (await deedsTo(user)).map(({ action, details }) => [action, details]),
    [["user.signed_out", { ended: 2 }]],
  );
});

test("a closed account: cannot be changed, banned or unbanned", async () => {
  const user = await market.createUser();
  const session = await market.createSession(user.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  for (const reply of [
    await admin.patch(pathOf(user), { role: "seller" }),
    await admin.post(`${pathOf(user)}/ban`, { reason: "x" }),
    await admin.post(`${pathOf(user)}/unban`),
  ])
    assert.equal(assertError(reply, 409, "INVALID_STATE").current, "closed");
  const { data } = (await admin.get(pathOf(user))).body;
  assert.deepEqual([data.name, data.closedAt], ["Closed account", market.clock.now.toISOString()]);
  assert.match(data.email, /@invalid\.invalid$/);
  assert.ok((await found("status=closed")).includes(idOf(user)));
});
