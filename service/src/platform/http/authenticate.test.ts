import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { permissions } from "@stoa/contract";
import { haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { mintKey } from "../../accounts/api-keys/api-key.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";

let market: Market;
let member: Client;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
});
after(() => market.close());

const nobody = () => market.as(null);
const withHeader = (authorization: string, path = "/v1/products") => nobody().get(path, { authorization });

function assertRefused(reply: Reply) {
  assertError(reply, 401, "INVALID_API_KEY");
  assert.equal(
    reply.headers.get("www-authenticate"),
    `Bearer realm="stoa", resource_metadata="${market.origin}/.well-known/oauth-protected-resource/v1"`,
  );
  assert.doesNotMatch(reply.text, /stoa_(test|live)_/, "the answer has no credential");
}

const mistyped = (key: string) => key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");

suite("401 with WWW-Authenticate", () => {
  test("a key of the other environment, even if this database has it", async () => {
    const { value, lookup, digest } = mintKey("production");
    const user = await market.createUser();
    const moved = [user.userId, lookup, digest];
    await market.query("update api_keys set lookup = $2, digest = $3 where user_id = $1", moved);
    assertRefused(await withHeader(`Bearer ${value}`));
  });

  test("an unknown key with a right checksum", async () => {
    assertRefused(await withHeader(`Bearer ${mintKey("test").value}`));
  });

  test("a wrong checksum", async () => {
    assertRefused(await withHeader(`Bearer ${mistyped(member.key)}`));
  });

  test("a known lookup with another secret", async () => {
    const user = await market.createUser();
    const another = mintKey("test");
    await market.query("update api_keys set digest = $2 where user_id = $1", [user.userId, another.digest]);
    assertRefused(await user.get("/v1/products"));
  });

  for (const header of [
    "",
    "Bearer",
    "Bearer ",
    "Basic dXNlcjpwYXNz",
    "Token KEY",
    "KEY",
    "Bearer KEY KEY",
    "Bearer KEY,",
    "Bearer  KEY",
    "Bearer stoa_test_",
    `Bearer ${"x".repeat(5_000)}`,
  ]) {
    test(`the header “${header.slice(0, 24)}”`, async () => {
      assertRefused(await withHeader(header.replaceAll("KEY", member.key)));
    });
  }

  test("a revoked key", async () => {
    const leaver = await market.createUser();
    assert.equal((await leaver.get("/v1/products")).status, 200);
    await market.query("update api_keys set revoked_at = $2 where user_id = $1", [
      leaver.userId,
      market.clock.now,
    ]);
    assertRefused(await leaver.get("/v1/products"));
  });

  test("a key from its expiry on", async () => {
    const expiresAt = new Date(market.clock.now.getTime() + 60_000);
    const input = { userId: member.userId, name: "short", permissions: [...permissions], expiresAt };
    const { key } = await createKeyAsOperator(market.service.ctx, input);
    market.clock.forward(59_999);
    assert.equal((await withHeader(`Bearer ${key}`)).status, 200);
    market.clock.forward(1);
    assertRefused(await withHeader(`Bearer ${key}`));
  });
});

suite("an API key", () => {
  test("Bearer: in any case", async () => {
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      assert.equal((await withHeader(`${scheme} ${member.key}`)).status, 200);
    }
  });

  test("in the query: works on each kind of endpoint; its answers are not cacheable", async () => {
    const draft = await nobody().post(`/v1/products?api_key=${member.key}`, haiku);
    assert.equal(draft.status, 201, draft.text);
    for (const path of ["/v1/products", `/v1/products/${draft.body.data.id}`, "/v1/nothing"]) {
      const reply = await nobody().get(`${path}?api_key=${member.key}`);
      assert.notEqual(reply.status, 401, reply.text);
      assert.equal(reply.headers.get("cache-control"), "no-store", path);
    }
  });

  test("unknown, in the query: 401", async () => {
    for (const key of ["", "x", mintKey("test").value]) {
      assertRefused(await nobody().get(`/v1/products?api_key=${key}`));
    }
  });

  test("the same in header and query: accepted", async () => {
    assert.equal((await member.get(`/v1/products?api_key=${member.key}`)).status, 200);
  });

  test("two valid, different keys in header and query: 400", async () => {
    const other = await market.createUser();
    const reply = await member.get(`/v1/products?api_key=${other.key}`);
    assertError(reply, 400, "INVALID_REQUEST", "api_key");
    assert.doesNotMatch(reply.text, /stoa_/);
  });

  test("twice in the query: 400", async () => {
    const reply = await nobody().get(`/v1/products?api_key=${member.key}&api_key=${member.key}`);
    assertError(reply, 400, "INVALID_REQUEST", "api_key");
  });

  test("valid in the query beside an invalid header: 401", async () => {
    for (const header of ["Basic dXNlcjpwYXNz", "", "Bearer", `Bearer ${mistyped(member.key)}`]) {
      const reply = await withHeader(header, `/v1/products?api_key=${member.key}`);
      assertError(reply, 400, "INVALID_REQUEST", "api_key");
    }
  });

  test("lastUsedAt: at most once a minute", async () => {
    const user = await market.createUser();
    const lastUse = async () => {
      const { rows } = await market.query("select last_used_at as at from api_keys where user_id = $1", [
        user.userId,
      ]);
      return (rows[0].at as Date | null)?.getTime();
    };
    const useUntil = async (moment: number) => {
      await user.get("/v1/products");
      // A request does not wait for this write, which may need a new connection.
      await becomes(lastUse, (at) => at === moment, "the last use");
    };
    assert.equal(await lastUse(), undefined);
    const first = market.clock.now.getTime();
    await useUntil(first);
    market.clock.forward(59_000);
    for (let times = 0; times < 10; times++) await user.get("/v1/products");
    assert.equal(await lastUse(), first);
    market.clock.forward(2_000);
    await useUntil(first + 61_000);
  });
});
