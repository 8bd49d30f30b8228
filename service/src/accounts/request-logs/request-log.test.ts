import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { LoggedRequest } from "@stoa/contract";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { deleteOldRequests, flushRequestLog } from "./request-log.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** The requests of an account so far, newest first. */
async function logOf(user: Client, query = ""): Promise<LoggedRequest[]> {
  await flushRequestLog(market.service.ctx);
  const reply = await user.get(`/v1/request-logs?limit=100${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

const summaryOf = ({ method, path, status, errorCode }: LoggedRequest) => [method, path, status, errorCode];

suite("GET /v1/request-logs", () => {
  test("each request of the account, newest first, without query, body and key", async () => {
    const user = await market.createUser();
    const stranger = await market.createUser();
    await user.get(`/v1/products?search=secret&api_key=${user.key}`);
    await user.post("/v1/purchases", { productId: "prod_nothing", secret: "in the body" });
    await user.get("/v1/nothing/here");
    await stranger.get("/v1/account");
    const log = await logOf(user);
    assert.deepEqual(log.map(summaryOf), [
      ["GET", "/v1/nothing/here", 404, "NOT_FOUND"],
      ["POST", "/v1/purchases", 400, "INVALID_REQUEST"],
      ["GET", "/v1/products", 200, null],
    ]);
    const [unknown, , listed] = log as [LoggedRequest, LoggedRequest, LoggedRequest];
    assert.deepEqual([unknown.operation, listed.operation], [null, "products.list"]);
    assert.equal(listed.credential, "key");
    assert.match(listed.apiKeyId!, /^key_/);
    const text = JSON.stringify(log);
    for (const secret of ["secret", user.key]) assert.ok(!text.includes(secret), secret);
  });

  test("the request's id is that of the response; the log itself is not listed", async () => {
    const user = await market.createUser();
    const { headers } = await user.get("/v1/account");
    await logOf(user);
    const log = await logOf(user);
    assert.deepEqual(
      log.map(({ requestId }) => requestId),
      [headers.get("x-request-id")],
    );
  });

  test("a response that shows a secret: has no error code", async () => {
    const user = await market.createUser();
    const created = await user.post("/v1/webhooks", { url: "https://example.com/hooks" });
    assert.equal(created.status, 201, created.text);
    assert.deepEqual((await logOf(user)).map(summaryOf), [["POST", "/v1/webhooks", 201, null]]);
  });

  test("a session and its key: each under its credential", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    await session.get("/v1/account");
    await user.get("/v1/account");
    const [byKey, bySession] = await logOf(user);
    assert.deepEqual(
      [byKey, bySession].map((each) => [each!.credential, each!.apiKeyId === null]),
      [
        ["key", false],
        ["session", true],
      ],
    );
    const ofKey = await logOf(user, `&apiKeyId=${byKey!.apiKeyId}`);
    assert.deepEqual(ofKey, [byKey]);
    assert.deepEqual(await logOf(user, "&apiKeyId=key_nothing"), []);
  });

  test("filters by method, status, class of status and path; pages by id", async () => {
    const user = await market.createUser();
    await user.get("/v1/account");
    await user.get("/v1/products/prod_1");
    await user.post("/v1/webhooks", {});
    const paths = async (query: string) => (await logOf(user, query)).map(({ path }) => path);
    assert.deepEqual(await paths("&method=post"), ["/v1/webhooks"]);
    assert.deepEqual(await paths("&status=404"), ["/v1/products/prod_1"]);
    assert.deepEqual(await paths("&status=4xx"), ["/v1/webhooks", "/v1/products/prod_1"]);
    assert.deepEqual(await paths("&status=2XX"), ["/v1/account"]);
    assert.deepEqual(await paths("&path=/v1/prod"), ["/v1/products/prod_1"]);
    const [newest] = await logOf(user);
    assert.deepEqual(await paths(`&before=${newest!.id}`), ["/v1/products/prod_1", "/v1/account"]);
    assert.deepEqual(await paths("&before=req_nothing"), []);
    assertError(await user.get("/v1/request-logs?status=9xx"), 400, "INVALID_REQUEST", "status");
  });

  test("filters by credential, error code, request id and time", async () => {
    const user = await market.createUser();
    const session = await market.createSession(user.userId);
    await session.get("/v1/account");
    market.clock.forward(60_000);
    const noon = encodeURIComponent(market.clock.now.toISOString());
    const { headers } = await user.get("/v1/products/prod_1");
    await user.post("/v1/webhooks", {});
    const paths = async (query: string) => (await logOf(user, query)).map(({ path }) => path);
    assert.deepEqual(await paths("&credential=session"), ["/v1/account"]);
    assert.deepEqual(await paths("&credential=token"), []);
    assert.deepEqual(await paths("&errorCode=product_not_found"), ["/v1/products/prod_1"]);
    assert.deepEqual(await paths(`&requestId=${headers.get("x-request-id")}`), ["/v1/products/prod_1"]);
    assert.deepEqual(await paths(`&from=${noon}`), ["/v1/webhooks", "/v1/products/prod_1"]);
    assert.deepEqual(await paths(`&to=${noon}`), ["/v1/account"]);
    assertError(await user.get("/v1/request-logs?from=noon"), 400, "INVALID_REQUEST", "from");
  });

  test("a stream: logged once, when it ends", async () => {
    const user = await market.createUser();
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${user.key}` };
    const stream = await fetch(`${market.origin}/v1/events/stream`, { headers, signal: abort.signal });
    await stream.body!.getReader().read();
    assert.deepEqual(await logOf(user), []);
    abort.abort();
    let log: LoggedRequest[] = [];
    while (log.length === 0) log = await logOf(user);
    assert.deepEqual(log.map(summaryOf), [["GET", "/v1/events/stream", 200, null]]);
  });

  test("a hostile path and User-Agent: stored as text", async () => {
    const user = await market.createUser();
    const path = `/v1/products/${"%F0%9F%98%80".repeat(200)}`;
    await user.get(path, { "user-agent": "x".repeat(2_000) });
    const [logged] = await logOf(user);
    assert.deepEqual([logged!.path.length, logged!.userAgent!.length], [300, 300]);
  });

  test("without the permission webhooks:write: 403", async () => {
    const user = await market.createUser({ permissions: ["products:read"] });
    assertError(await user.get("/v1/request-logs"), 403, "UNAUTHORIZED");
  });
});

test("after seven days: deleted", async () => {
  const user = await market.createUser();
  await user.get("/v1/account");
  market.clock.forward(4 * DAY_MS);
  await user.get("/v1/balance");
  await flushRequestLog(market.service.ctx);
  market.clock.forward(4 * DAY_MS);
  await deleteOldRequests(market.service.ctx);
  assert.deepEqual(
    (await logOf(user)).map(({ path }) => path),
    ["/v1/balance"],
  );
});

test("more requests than a second takes: a hundred of each account are listed, and the buffer does not grow", async () => {
  const [user, other] = [await market.createUser(), await market.createUser()];
  const { ctx } = market.service;
  await flushRequestLog(ctx);
  const request = { requestId: "r", method: "GET", path: "/v1/x", operation: null, errorCode: null };
  const add = ({ userId }: Client) =>
    ctx.requestLog.add(ctx, {
      ...{ ...request, status: 200, durationMs: 1, userAgent: null },
      caller: { kind: "key", keyId: null, userId } as never,
    });
  for (let n = 0; n < 1_500; n++) add(user);
  add(other);
  assert.equal((await logOf(user)).length, 100);
  assert.equal((await logOf(other)).length, 1);
});
