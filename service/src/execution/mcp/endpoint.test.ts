import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  Client as McpClient,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import { connectMcp, eras, mcpUrl, OAuthTestClient, revisions, textOf, toolFor } from "../../../test/mcp.ts";
import { createOAuthClient, type OAuthClient, openOAuthMarket, requestTokens } from "../../../test/oauth.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";

let market: Market;
let app: OAuthClient;
let buyer: Client;
before(async () => {
  market = await openOAuthMarket();
  const author = await market.createUser({ name: "Ada" });
  app = await createOAuthClient(market, author);
  buyer = await market.createUser();
  await buyProduct(buyer, await createProduct(author));
});
after(() => market.close());

const metadataUrl = () => `${market.origin}/.well-known/oauth-protected-resource/mcp`;
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};
const BOTH = { accept: "application/json, text/event-stream" };
const postMessage = (caller: Client, message: unknown = initialize, headers: Record<string, string> = {}) =>
  caller.post("/mcp", message, { ...BOTH, ...headers });

const tokenFor = async (ask: Record<string, string>) =>
  market.as((await requestTokens(market, buyer.userId, app, ask)).access_token);

suite("official MCP client", () => {
  for (const revision of revisions) {
    test(`${revision}: 401, discovery, registration and PKCE lead to a tool call`, async () => {
      const desk = new OAuthTestClient(market, buyer);
      const transport = () =>
        new StreamableHTTPClientTransport(mcpUrl(market.origin), { authProvider: desk });
      const stranger = new McpClient(
        { name: "Desk", version: "1" },
        { versionNegotiation: { mode: eras[revision] } },
      );
      const first = transport();
      await assert.rejects(stranger.connect(first), UnauthorizedError);
      assert.equal(desk.asked?.searchParams.get("resource"), `${market.origin}/mcp`);
      assert.equal(desk.asked!.searchParams.get("scope"), "ai:execute offline_access");
      await first.finishAuth(desk.answer!);

      const client = new McpClient(
        { name: "Desk", version: "1" },
        { versionNegotiation: { mode: eras[revision] } },
      );
      await client.connect(transport());
      assert.equal(client.getServerVersion()?.name, "stoa");
      const name = await toolFor(client, "Haiku about anything");
      const result = await client.callTool({ name, arguments: { topic: "rain" } });
      assert.match(textOf(result), /^\[sandbox\] /);
      await client.close();
    });
  }

  test("negotiation: the newest revision by default, an older one if pinned", async () => {
    const client = new McpClient({ name: "t", version: "1" }, { versionNegotiation: { mode: "auto" } });
    const requestInit = { headers: { authorization: `Bearer ${buyer.key}` } };
    await client.connect(new StreamableHTTPClientTransport(mcpUrl(market.origin), { requestInit }));
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    await client.close();
    const older = await postMessage(buyer, {
      ...initialize,
      params: { ...initialize.params, protocolVersion: "2025-06-18" },
    });
    assert.equal(older.status, 200);
  });
});

suite("credentials of /mcp", () => {
  test("none or a wrong one: 401 with the URL of the resource metadata", async () => {
    for (const credential of [null, "stoa_test_wrong", "wrong", "a.b.c"]) {
      const reply = await postMessage(market.as(credential));
      assertError(reply, 401, "INVALID_API_KEY");
      assert.equal(
        reply.headers.get("www-authenticate"),
        `Bearer realm="stoa", scope="ai:execute offline_access", resource_metadata="${metadataUrl()}"`,
      );
    }
  });

  test("key or token without ai:execute: 403 with the missing permission", async () => {
    assert.equal((await postMessage(buyer)).status, 200);
    const key = await market.createUser({ permissions: ["products:read"] });
    assert.equal(assertError(await postMessage(key), 403, "UNAUTHORIZED").required, "ai:execute");
    const resource = `${market.origin}/mcp`;
    assert.equal((await postMessage(await tokenFor({ scope: "ai:execute", resource }))).status, 200);
  });

  test("token of /v1 at /mcp, and of /mcp at /v1: 401", async () => {
    const forApi = await tokenFor({ scope: "ai:execute", resource: `${market.origin}/v1` });
    assert.equal((await forApi.get("/v1/ai/executions")).status, 200);
    assertError(await postMessage(forApi), 401, "INVALID_API_KEY");
    const forMcp = await tokenFor({ scope: "ai:execute", resource: `${market.origin}/mcp` });
    assertError(await forMcp.get("/v1/ai/executions"), 401, "INVALID_API_KEY");
  });

  test("session in header or cookie, or key in the query: 401", async () => {
    const session = await market.createSession(buyer.userId);
    assertError(await postMessage(session), 401, "INVALID_API_KEY");
    const browser = { cookie: `__Host-session=${session.key}`, "sec-fetch-site": "same-origin" };
    assertError(await postMessage(market.as(null), initialize, browser), 401, "INVALID_API_KEY");
    const reply = await market.as(null).post(`/mcp?api_key=${buyer.key}`, initialize, BOTH);
    assertError(reply, 401, "INVALID_API_KEY");
  });

  test("banned user: 401 from the next request", async () => {
    const banned = await market.createUser();
    const client = await connectMcp(market, banned);
    await market.query("update users set banned_at = now() where id = $1", [banned.userId]);
    await assert.rejects(client.listTools(), /INVALID_API_KEY/);
    await client.close();
  });

  test("request of another origin: 403", async () => {
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: market.origin.replace("127.0.0.1", "rebound.example") },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const reply = await postMessage(buyer, initialize, headers as Record<string, string>);
      assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "same-origin");
    }
    assert.equal((await postMessage(buyer, initialize, { origin: market.origin })).status, 200);
    const preflight = await fetch(mcpUrl(market.origin), {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    assert.equal(preflight.headers.get("access-control-allow-origin"), null);
  });

  test("quota of the plan: counts each message", async () => {
    const quotas = [{ requests: 4, seconds: 3_600 }];
    const planConfig = {
      ...builtInPlans,
      plans: { ...builtInPlans.plans, free: { ...builtInPlans.plans.free, quotas } },
    };
    const small = await openOAuthMarket({ config: { planConfig } });
    try {
      const user = await small.createUser();
      const replies = [];
      for (let at = 0; at < 5; at++) replies.push(await postMessage(user));
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 200, 200, 200, 429],
      );
      assertError(replies[4]!, 429, "RATE_LIMIT_EXCEEDED");
      assert.ok(replies[4]!.headers.get("retry-after"));
    } finally {
      await small.close();
    }
  });
});

suite("messages of /mcp", () => {
  test("batch, invalid, deep or large JSON: is refused", async () => {
    const batch = Array.from({ length: 3 }, (_, id) => ({ ...initialize, id }));
    assertError(await postMessage(buyer, batch), 400, "INVALID_REQUEST", "body");
    const raw = (body: string, type = "application/json") =>
      buyer.request("POST", "/mcp", { body, headers: { ...BOTH, "content-type": type } });
    assertError(await raw("{"), 400, "INVALID_REQUEST", "body");
    assertError(await raw("[".repeat(100)), 400, "INVALID_REQUEST", "body");
    assertError(await raw('{"__proto__":{}}'), 400, "INVALID_REQUEST");
    assertError(await raw(JSON.stringify(initialize), "text/plain"), 415, "UNSUPPORTED_MEDIA_TYPE");
    assertError(await raw(`"${"x".repeat(1_100_000)}"`), 413, "PAYLOAD_TOO_LARGE");
  });

  test("JSON that is no message of the protocol: a JSON-RPC error", async () => {
    for (const message of [
      {},
      5,
      null,
      "text",
      { jsonrpc: "2.0", method: 5 },
      { jsonrpc: "1.0", id: 1, method: "ping" },
    ]) {
      const { status, body } = await postMessage(buyer, message);
      assert.ok(status >= 400 && status < 500, `${status}`);
      assert.equal(typeof body.error.code, "number");
    }
    const empty = await buyer.request("POST", "/mcp", { headers: BOTH });
    assert.deepEqual([empty.status, empty.body.error.code], [415, -32_000]);
  });

  test("GET and DELETE: 405, because there are no streams or sessions", async () => {
    for (const method of ["GET", "DELETE"])
      assert.equal((await buyer.request(method, "/mcp", { headers: BOTH })).status, 405);
  });
});
