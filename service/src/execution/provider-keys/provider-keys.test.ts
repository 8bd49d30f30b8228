import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { dumpDatabase } from "../../../test/dump.ts";
import { createDraft } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import {
  GOOD_KEY,
  type ProviderServer,
  refusedUrl,
  startProviderServer,
} from "../../../test/provider-server.ts";
import {
  createProviderKey,
  providersAt,
  run,
  runToCompletion,
  startBlockedProvider,
} from "../../../test/runs.ts";
import { toUuid } from "../../core/ids.ts";
import { createVault } from "../../core/vault.ts";

const SECRET = "sk-proj-0123456789-write-only-ABCD";

let provider: ProviderServer;
let market: Market;
let owner: Client;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  owner = await market.createUser({ name: "Owner" });
});
after(async () => {
  await market.close();
  await provider.close();
});

const create = (fields: object, by = owner) =>
  by.post("/v1/ai/keys", { provider: "openai", name: "Key", key: SECRET, ...fields });
const patch = (id: string, change: object, by = owner) => by.patch(`/v1/ai/keys/${id}`, change);
const verify = (id: string, by = owner) => by.post(`/v1/ai/keys/${id}/verify`);
const idsOf = async (by: Client): Promise<string[]> =>
  (await by.get("/v1/ai/keys?limit=100")).body.data.map(({ id }: { id: string }) => id);
const uuidOf = (id: string) => toUuid("pkey", id);

suite("POST /v1/ai/keys", () => {
  test("valid key: 201 with all fields but the secret", async () => {
    const reply = await create({ key: GOOD_KEY, monthlyBudget: 20.5, maxConcurrency: 4 });
    assert.equal(reply.status, 201);
    const { id, ...rest } = reply.body.data;
    assert.match(id, /^pkey_[0-9a-z]{26}$/);
    assert.deepEqual(rest, {
      provider: "openai",
      name: "Key",
      last4: GOOD_KEY.slice(-4),
      baseUrl: null,
      status: "valid",
      monthlyBudget: 20.5,
      maxConcurrency: 4,
      createdAt: market.clock.now.toISOString(),
      lastUsedAt: null,
    });
    const plain = (await create({})).body.data;
    assert.deepEqual([plain.monthlyBudget, plain.maxConcurrency], [null, null]);
  });

  test("secret: is in no response, no log line and, in clear text, in no row", async () => {
    const by = await market.createUser();
    const texts: string[] = [];
    const collect = async (reply: Promise<{ text: string }>) => texts.push((await reply).text);
    const { id } = (await create({}, by)).body.data;
    await collect(create({}, by));
    await collect(create({ provider: "nobody" }, by));
    await collect(create({ baseUrl: "https://example.com" }, by));
    await collect(patch(id, { key: SECRET, name: "Renamed" }, by));
    await collect(patch(id, { key: SECRET, name: "" }, by));
    await collect(verify(id, by));
    await collect(by.get("/v1/ai/keys"));
    const productId = await createDraft(by);
    await collect(run(by, { productId, apiKeyId: id }));
    await collect(by.delete(`/v1/ai/keys/${id}`));
    for (const secret of [SECRET, "write-only", Buffer.from(SECRET).toString("base64")]) {
      for (const text of texts) assert.ok(!text.includes(secret), text);
      assert.ok(!market.logs.join("\n").includes(secret));
      assert.ok(!(await dumpDatabase(market)).includes(secret));
    }
  });

  for (const [key, last4] of Object.entries({ a: "", "sk-12345678": "", "sk-123456789": "6789" })) {
    test(`secret of ${key.length} characters: last4 is "${last4}"`, async () => {
      assert.equal((await create({ key })).body.data.last4, last4);
    });
  }

  test("secret: is trimmed and must be valid in a header", async () => {
    const { id } = (await create({ key: `  ${GOOD_KEY}\n` })).body.data;
    assert.equal((await verify(id)).body.data.status, "valid");
    for (const key of ["", "   ", "two words", "naïve-key", "line\nbreak", "x".repeat(1_001)]) {
      const details = assertError(await create({ key }), 400, "INVALID_REQUEST", "key");
      if (key.trim() !== "") assert.ok(!JSON.stringify(details).includes(key.slice(0, 100)));
    }
  });

  test("sandbox or unknown provider: 400", async () => {
    for (const id of ["sandbox", "OpenAI", "nobody", ""])
      assertError(await create({ provider: id }), 400, "INVALID_REQUEST", "provider");
  });

  test("limits outside their ranges: 400", async () => {
    for (const monthlyBudget of [0, -1, 0.001, 1_000_001, "5"])
      assertError(await create({ monthlyBudget }), 400, "INVALID_REQUEST", "monthlyBudget");
    for (const maxConcurrency of [0, -1, 1.5, 101, "5"])
      assertError(await create({ maxConcurrency }), 400, "INVALID_REQUEST", "maxConcurrency");
    for (const monthlyBudget of [0.01, 0.07, 0.29, 19.99, 1_000_000]) {
      assert.equal((await create({ monthlyBudget })).body.data?.monthlyBudget, monthlyBudget);
    }
  });

  test("key used by a run: lastUsedAt is the time of the run", async () => {
    const { id } = (await create({ key: GOOD_KEY })).body.data;
    const productId = await createDraft(owner);
    market.clock.forward(1_000);
    await runToCompletion(owner, { productId, apiKeyId: id });
    const { body } = await owner.get("/v1/ai/keys");
    assert.equal(body.data[0].lastUsedAt, market.clock.now.toISOString());
  });
});

test("POST /v1/ai/keys: at most 100 keys for an account, and the audit log records stored, replaced and removed keys", async () => {
  const by = await market.createUser();
  const fields = { provider: "ollama", baseUrl: "http://127.0.0.1:9" };
  const { id } = (await create(fields, by)).body.data;
  await market.query(
    `insert into provider_keys (id, user_id, provider, name, sealed_key, last4, base_url, status, created_at)
     select gen_random_uuid(), user_id, provider, name, sealed_key, last4, base_url, status, created_at
       from provider_keys, generate_series(1, 98) where id = $1`,
    [uuidOf(id)],
  );
  const replies = await Promise.all([1, 2, 3].map(() => create(fields, by)));
  assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 422, 422]);
  for (const reply of replies)
    if (reply.status !== 201) assert.equal(assertError(reply, 422, "VALIDATION_ERROR").limit, 100);
  await patch(id, { name: "Renamed" }, by);
  await patch(id, { key: "another-secret" }, by);
  await by.delete(`/v1/ai/keys/${id}`);
  assert.equal((await create(fields, by)).status, 201, "a deleted key does not count");
  const { rows } = await market.query(
    "select action from audit_log where actor_id = $1 and target_id = $2 order by id",
    [by.userId, id],
  );
  assert.deepEqual(
    rows.map(({ action }) => action),
    ["provider_key.stored", "provider_key.replaced", "provider_key.removed"],
  );
});

suite("GET /v1/ai/keys", () => {
  test("several keys: own keys only, newest first, in pages", async () => {
    const by = await market.createUser();
    const ids: string[] = [];
    for (const name of ["one", "two", "three"]) ids.unshift((await create({ name }, by)).body.data.id);
    assert.deepEqual(await idsOf(by), ids);
    const { body } = await by.get("/v1/ai/keys?limit=2&page=2");
    assert.deepEqual(
      body.data.map(({ id }: { id: string }) => id),
      ids.slice(2),
    );
    assert.equal(body.meta.total, 3);
    assert.deepEqual(await idsOf(await market.createUser()), []);
  });

  test("deleted key: is gone from the list, and its secret from the database", async () => {
    const by = await market.createUser();
    const { id } = (await create({}, by)).body.data;
    const { body } = await by.delete(`/v1/ai/keys/${id}`);
    assert.deepEqual(body.data, { id, deleted: true });
    assert.deepEqual(await idsOf(by), []);
    for (const reply of [
      await by.delete(`/v1/ai/keys/${id}`),
      await patch(id, { name: "x" }, by),
      await verify(id, by),
    ])
      assertError(reply, 404, "PROVIDER_KEY_NOT_FOUND");
    const { rows } = await market.query("select sealed_key, last4 from provider_keys where id = $1", [
      uuidOf(id),
    ]);
    assert.deepEqual(rows, [{ sealed_key: "", last4: "" }]);
  });
});

test("key of another user: 404 on every path, and no change", async () => {
  const { id } = (await create({ name: "Mine" })).body.data;
  const other = await market.createUser();
  for (const reply of [
    await patch(id, { name: "Theirs" }, other),
    await verify(id, other),
    await other.delete(`/v1/ai/keys/${id}`),
  ])
    assertError(reply, 404, "PROVIDER_KEY_NOT_FOUND");
  const mine = (await owner.get("/v1/ai/keys?limit=100")).body.data.find(
    (key: { id: string }) => key.id === id,
  );
  assert.deepEqual([mine.name, mine.status], ["Mine", "invalid"]);
});

suite("PATCH /v1/ai/keys/:id", () => {
  test("some fields: changes only these", async () => {
    const { id, ...before } = (await create({ key: GOOD_KEY, monthlyBudget: 5 })).body.data;
    await verify(id);
    const reply = await patch(id, { name: "New", maxConcurrency: 2 });
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.body.data, { id, ...before, name: "New", maxConcurrency: 2, status: "valid" });
    assert.deepEqual((await patch(id, {})).body.data, reply.body.data);
    const freed = await patch(id, { monthlyBudget: null, maxConcurrency: null });
    assert.deepEqual([freed.body.data.monthlyBudget, freed.body.data.maxConcurrency], [null, null]);
  });

  test("new secret: resets the status and is used from then on", async () => {
    const { id } = (await create({ key: "a-wrong-provider-key" })).body.data;
    assert.equal((await verify(id)).body.data.status, "invalid");
    provider.nextListing({ status: 500 });
    const { status, last4 } = (await patch(id, { key: GOOD_KEY })).body.data;
    assert.deepEqual([status, last4], ["unverified", GOOD_KEY.slice(-4)]);
    assert.equal((await verify(id)).body.data.status, "valid");
  });

  test("read-only fields: 400", async () => {
    const { id } = (await create({})).body.data;
    for (const field of ["provider", "status", "last4", "id"])
      assertError(await patch(id, { [field]: "anthropic" }), 400, "INVALID_REQUEST", field);
  });
});

suite("verification of a new secret", () => {
  for (const id of ["openai", "anthropic", "google", "openrouter", "openai-compatible"]) {
    const address = () => (id === "openai-compatible" ? { baseUrl: provider.url } : {});
    const statusOf = async (reply: Promise<Reply>) => (await reply).body.data.status;

    test(`${id}: the status follows the provider's answer, and the key is always stored`, async () => {
      const fields = { provider: id, ...address() };
      const before = provider.requests.length;
      assert.equal(await statusOf(create({ ...fields, key: GOOD_KEY })), "valid");
      assert.equal(await statusOf(create({ ...fields, key: "a-wrong-provider-key" })), "invalid");
      for (const listing of [{ status: 403 }, { status: 402 }, { status: 429 }]) {
        provider.nextListing(listing);
        assert.equal(
          await statusOf(create({ ...fields, key: GOOD_KEY })),
          "valid",
          "the provider accepts the key, but not this request",
        );
      }
      provider.nextListing({ status: 500 });
      const { body } = await create({ ...fields, key: GOOD_KEY });
      assert.equal(body.data.status, "unverified");
      assert.equal(await statusOf(patch(body.data.id, { key: "a-wrong-provider-key" })), "invalid");
      assert.equal(await statusOf(patch(body.data.id, { key: GOOD_KEY })), "valid");
      const requests = provider.requests.slice(before);
      assert.deepEqual(
        new Set(requests.map(({ method }) => method)),
        new Set(["GET"]),
        "only free requests are sent",
      );
    });
  }

  test("provider unreachable or slow: the key is stored as unverified", async (t) => {
    const blocked = await startBlockedProvider();
    const VERIFY_MS = 54_321;
    const shop = await openMarket({ providers: { ...providersAt(provider), verifyMs: VERIFY_MS } });
    t.after(async () => {
      await shop.close();
      await blocked.close();
    });
    const by = await shop.createUser();
    blocked.holdNextListing();
    const stored = (baseUrl: string) => create({ provider: "openai-compatible", baseUrl, key: GOOD_KEY }, by);
    const unreachable = await stored(await refusedUrl());
    // The time ends when the request has arrived.
    const { timeout } = AbortSignal;
    const time = new AbortController();
    t.mock.method(AbortSignal, "timeout", (ms: number) => (ms === VERIFY_MS ? time.signal : timeout(ms)));
    const slow = stored(blocked.url);
    await blocked.arrivals(1);
    time.abort();
    for (const reply of [unreachable, await slow])
      assert.deepEqual([reply.status, reply.body.data?.status], [201, "unverified"]);
  });

  test("other fields changed: no verification", async () => {
    const id = await createProviderKey(owner);
    const before = provider.requests.length;
    await patch(id, { name: "Other", monthlyBudget: 3 });
    assert.equal(provider.requests.length, before);
  });
});

suite("POST /v1/ai/keys/:id/verify", () => {
  for (const id of ["openai", "anthropic", "google", "openrouter", "openai-compatible"]) {
    test(`${id}: stores whether the provider accepts the key`, async () => {
      const baseUrl = id === "openai-compatible" ? { baseUrl: provider.url } : {};
      const good = await createProviderKey(owner, { provider: id, ...baseUrl });
      assert.equal((await verify(good)).body.data.status, "valid");
      const bad = await createProviderKey(owner, { provider: id, key: "a-wrong-provider-key", ...baseUrl });
      assert.equal((await verify(bad)).body.data.status, "invalid");
      for (const [key, status] of [
        [good, "valid"],
        [bad, "invalid"],
      ] as const) {
        const { body } = await owner.get("/v1/ai/keys?limit=100");
        assert.equal(
          body.data.find((row: { id: string }) => row.id === key).status,
          status,
          "the list has the stored status",
        );
      }
    });
  }

  test("unreachable provider: 502, and the status stays", async () => {
    const fields = { provider: "openai-compatible", baseUrl: provider.url, key: GOOD_KEY };
    const { id } = (await create(fields)).body.data;
    await patch(id, { baseUrl: await refusedUrl(), key: GOOD_KEY });
    const details = assertError(await verify(id), 502, "PROVIDER_ERROR");
    assert.deepEqual(details, { source: "provider", provider: "openai-compatible" });
    assert.equal((await patch(id, {})).body.data.status, "unverified");
    const failing = await createProviderKey(owner);
    await verify(failing);
    provider.nextListing({ status: 500 });
    assertError(await verify(failing), 502, "PROVIDER_ERROR");
    assert.equal((await patch(failing, {})).body.data.status, "valid", "the status stays");
  });

  test("secret replaced meanwhile: the answer about the old one is not stored", async (t) => {
    const blocked = await startBlockedProvider();
    t.after(() => blocked.close());
    const fields = { provider: "openai-compatible", baseUrl: blocked.url };
    const { id } = (await create(fields)).body.data;
    blocked.holdNextListing();
    const verified = verify(id);
    await blocked.arrivals(1);
    assert.equal((await patch(id, { key: GOOD_KEY })).body.data.status, "valid");
    blocked.answer(401);
    await verified;
    assert.equal((await patch(id, {})).body.data.status, "valid");
  });
});

suite("baseUrl of a provider key", () => {
  const PRIVATE = [
    "http://127.0.0.1:11434/v1",
    "http://localhost:11434/v1",
    "https://localhost/v1",
    "https://10.0.0.1/v1",
    "https://192.168.1.1/v1",
    "https://172.16.0.1/v1",
    "https://169.254.169.254/latest",
    "https://100.64.0.1/v1",
    "https://0.0.0.0/v1",
    "https://2130706433/v1",
    "https://0x7f.1/v1",
    "https://[::1]/v1",
    "https://[::ffff:127.0.0.1]/v1",
    "https://[fd00::1]/v1",
    "https://db.internal/v1",
  ];
  const BAD = [
    "",
    "nonsense",
    "ftp://example.com",
    "https://user:secret@example.com",
    "https://",
    "http://example.com",
  ];
  const compatible = (baseUrl: string) => ({ provider: "openai-compatible", baseUrl });

  test("provider: required for openai-compatible, optional for ollama, 400 for all others", async () => {
    assertError(await create({ provider: "openai-compatible" }), 400, "INVALID_REQUEST", "baseUrl");
    assert.equal((await create({ provider: "ollama" })).body.data.baseUrl, null);
    assert.equal(
      (await create({ provider: "ollama", baseUrl: provider.url })).body.data.baseUrl,
      provider.url,
    );
    for (const id of ["openai", "anthropic", "google", "mistral", "groq", "deepseek", "xai", "openrouter"]) {
      for (const baseUrl of ["https://example.com/v1", ""])
        assertError(await create({ provider: id, baseUrl }), 400, "INVALID_REQUEST", "baseUrl");
      const { id: key } = (await create({ provider: id })).body.data;
      const reply = await patch(key, { baseUrl: "https://example.com/v1", key: SECRET });
      assertError(reply, 400, "INVALID_REQUEST", "baseUrl");
    }
  });

  test("invalid address: 400", async () => {
    for (const baseUrl of BAD) {
      for (const id of ["openai-compatible", "ollama"])
        assertError(await create({ provider: id, baseUrl }), 400, "INVALID_REQUEST", "baseUrl");
      const { id } = (await create(compatible(provider.url))).body.data;
      assertError(await patch(id, { baseUrl, key: SECRET }), 400, "INVALID_REQUEST", "baseUrl");
    }
    assert.equal((await create(compatible("https://models.example.com/v1"))).status, 201);
  });

  test("address of this service: 400, even where loopback is allowed", async () => {
    assertError(await create(compatible(`${market.origin}/v1`)), 400, "INVALID_REQUEST", "baseUrl");
    assert.equal((await create(compatible("http://127.0.0.1:11434/v1"))).status, 201);
  });

  test("private address where the operator allows none: 400 at creation and change", async () => {
    const strict = await openMarket({ config: { allowedTargets: "" } });
    try {
      const by = await strict.createUser();
      const { id } = (await create(compatible("https://models.example.com/v1"), by)).body.data;
      for (const baseUrl of PRIVATE) {
        assertError(await create(compatible(baseUrl), by), 400, "INVALID_REQUEST", "baseUrl");
        assertError(await patch(id, { baseUrl, key: SECRET }, by), 400, "INVALID_REQUEST", "baseUrl");
      }
    } finally {
      await strict.close();
    }
  });

  test("address that is not allowed any more: is not called", async () => {
    const strict = await openMarket({ config: { allowedTargets: "" } });
    try {
      const by = await strict.createUser();
      const { id } = (await create(compatible("https://models.example.com/v1"), by)).body.data;
      const before = provider.requests.length;
      await strict.query("update provider_keys set base_url = $1", [provider.url]);
      const request = { productId: await createDraft(by), apiKeyId: id, options: { model: "m" } };
      const details = assertError(await run(by, request), 502, "PROVIDER_ERROR");
      assert.equal(details.reason, "address_refused");
      assertError(await verify(id, by), 502, "PROVIDER_ERROR");
      assert.equal(provider.requests.length, before);
    } finally {
      await strict.close();
    }
  });

  test("new address without a new secret: 400, and nothing is sent there", async (t) => {
    const elsewhere = await startProviderServer();
    t.after(() => elsewhere.close());
    const { id } = (await create({ ...compatible(provider.url), key: GOOD_KEY })).body.data;
    assertError(await patch(id, { baseUrl: elsewhere.url }), 400, "INVALID_REQUEST", "key");
    assert.equal((await patch(id, { baseUrl: provider.url, name: "Same" })).status, 200);
    await verify(id);
    assert.equal(elsewhere.requests.length, 0);
    assert.equal((await patch(id, { baseUrl: elsewhere.url, key: GOOD_KEY })).body.data.status, "valid");
    assert.equal(elsewhere.requests.length, 1);
  });
});

suite("sealed provider key", () => {
  const mustNotOpen = async (by: Client, id: string) => {
    const before = provider.requests.length;
    const productId = await createDraft(by);
    for (const reply of [await run(by, { productId, apiKeyId: id }), await verify(id, by)]) {
      assertError(reply, 500, "INTERNAL_ERROR");
      assert.equal(reply.body.error.details, undefined);
      assert.doesNotMatch(reply.text, /seal|vault|decrypt|authenticat|keyring/i);
    }
    assert.equal(provider.requests.length, before);
    assert.ok((await idsOf(by)).includes(id), "the key is listed and can be replaced");
    assert.equal((await patch(id, { key: GOOD_KEY }, by)).status, 200);
    assert.equal((await run(by, { productId, apiKeyId: id })).status, 200);
  };

  test("copied to another row: does not open", async () => {
    const from = await createProviderKey(owner);
    const to = await createProviderKey(owner, { key: "a-wrong-provider-key" });
    await market.query(
      "update provider_keys set sealed_key = (select sealed_key from provider_keys where id = $1) where id = $2",
      [uuidOf(from), uuidOf(to)],
    );
    await mustNotOpen(owner, to);
  });

  test("row moved to another user: does not open", async () => {
    const id = await createProviderKey(owner);
    const thief = await market.createUser();
    await market.query("update provider_keys set user_id = $1 where id = $2", [thief.userId, uuidOf(id)]);
    await mustNotOpen(thief, id);
  });

  test("rotated master key: old keys open with the old master key, new ones with the new one", async () => {
    const [old, fresh] = [
      { id: "old", bytes: randomBytes(32) },
      { id: "fresh", bytes: randomBytes(32) },
    ];
    const shop = await openMarket({ config: { masterKeys: [old] }, providers: providersAt(provider) });
    try {
      const by = await shop.createUser();
      const before = await createProviderKey(by);
      shop.service.ctx.vault = createVault([fresh, old]);
      assert.equal((await verify(before, by)).body.data.status, "valid");
      const after = await createProviderKey(by);
      shop.service.ctx.vault = createVault([fresh]);
      assert.equal((await verify(after, by)).body.data.status, "valid");
      assertError(await verify(before, by), 500, "INTERNAL_ERROR");
    } finally {
      await shop.close();
    }
  });
});
