import assert from "node:assert/strict";
import { after, before, beforeEach, mock, suite, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client as Account, type Market, openMarket } from "@stoa/service/test/market.ts";
import { allowTries } from "@stoa/service/test/tries.ts";
import {
  AbortError,
  AuthenticationError,
  ConnectionError,
  NotFoundError,
  RateLimitError,
  Stoa,
  type StoaOptions,
  TimeoutError,
  UnexpectedResponseError,
  ValidationError,
} from "../src/index.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";

let market: Market;
let proxy: FaultProxy;
let seller: Account;
let productId: string;
before(async () => {
  // The shortest pauses before retries.
  mock.method(Math, "random", () => 0);
  market = await openMarket();
  proxy = await startFaultProxy(market.origin);
  seller = await market.createUser();
  productId = await createProduct(seller);
});
beforeEach(() => {
  proxy.requests.length = 0;
  proxy.decide = () => "pass";
});
after(async () => {
  mock.restoreAll();
  await proxy.close();
  await market.close();
});

/** An address where nothing listens. */
async function closedOrigin(): Promise<string> {
  const { origin, close } = await startFaultProxy(market.origin);
  await close();
  return origin;
}

const connect = (account: Account, options: Partial<StoaOptions> = {}) =>
  new Stoa({ baseUrl: `${proxy.origin}/v1`, apiKey: account.key, ...options });

suite("retries", () => {
  test("a purchase whose responses are lost twice: one order, under one Idempotency-Key", async () => {
    const buyer = await market.createUser();
    proxy.decide = (n) => (n < 2 ? "lose-response" : "pass");
    const { orderId } = await connect(buyer).purchases.create({ productId });
    assert.equal(proxy.requests.length, 3);
    const keys = new Set(proxy.requests.map(({ headers }) => headers["idempotency-key"]));
    assert.equal(keys.size, 1);
    const orders = await connect(buyer).purchases.list().toArray();
    assert.deepEqual(
      orders.map((order) => order.orderId),
      [orderId],
    );
  });

  test("503 and a proxy's page: tried again", async () => {
    proxy.decide = (n) => (n === 0 ? { status: 503 } : n === 1 ? { status: 502, body: "<html>" } : "pass");
    assert.equal((await connect(seller).products.get(productId)).id, productId);
  });

  test("a response that is cut off: tried again", async () => {
    proxy.decide = (n) => (n === 0 ? { cutAfterBytes: 40 } : "pass");
    assert.equal((await connect(seller).products.get(productId)).id, productId);
  });

  test("429 with a Retry-After over a minute: RateLimitError with the time, not tried again", async () => {
    const body = JSON.stringify({
      success: false,
      error: { code: "RATE_LIMIT_EXCEEDED", message: "Too many" },
    });
    proxy.decide = () => ({ status: 429, body, headers: { "retry-after": "120", "x-request-id": "req_1" } });
    await assert.rejects(connect(seller).account.get(), (error) => {
      assert.ok(error instanceof RateLimitError);
      const { code, retryAfter, requestId, isRetryable } = error;
      assert.deepEqual(
        [code, retryAfter, requestId, isRetryable],
        ["RATE_LIMIT_EXCEEDED", 120, "req_1", true],
      );
      return true;
    });
    assert.equal(proxy.requests.length, 1);
  });

  test("a sign-in whose response is lost: not sent again, because it has no Idempotency-Key", async () => {
    proxy.decide = () => "lose-response";
    await assert.rejects(connect(seller).signIn.magicLink({ email: "a@example.com" }), ConnectionError);
    assert.equal(proxy.requests.length, 1);
  });

  test("400: not tried again", async () => {
    await assert.rejects(connect(seller).products.list({ limit: 0 }).page(), {
      name: "BadRequestError",
      code: "INVALID_REQUEST",
    });
    assert.equal(proxy.requests.length, 1);
  });
});

suite("errors", () => {
  test("each family has its class, with code, details, request id and documentation", async () => {
    const stoa = connect(seller);
    await assert.rejects(stoa.products.get("prod_0"), NotFoundError);
    await assert.rejects(connect({ ...seller, key: "stoa_test_wrong" }).account.get(), AuthenticationError);
    await assert.rejects(stoa.products.publish("prod_0"), (error: NotFoundError) => {
      assert.match(error.requestId ?? "", /^\S+$/);
      assert.match(error.docUrl ?? "", /PRODUCT_NOT_FOUND/);
      return true;
    });
    await assert.rejects(
      stoa.ai.execute({ productId, apiKeyId: "sandbox", variables: {} }),
      (error) => error instanceof ValidationError && error.details.errors?.[0]?.field !== undefined,
    );
  });

  test("a status and a code of a later version: the class of the status", async () => {
    const body = JSON.stringify({ success: false, error: { code: "SOMETHING_NEW", message: "New" } });
    for (const [status, name] of [
      [418, "ApiError"],
      [422, "ValidationError"],
      [599, "ServerError"],
    ] as const) {
      proxy.decide = () => ({ status, body });
      await assert.rejects(connect(seller).account.get(), { name, code: "SOMETHING_NEW", status });
    }
  });

  test("HTML in place of JSON: UnexpectedResponseError names the base URL", async () => {
    proxy.decide = () => ({ status: 200, body: "<!doctype html>", headers: { "content-type": "text/html" } });
    await assert.rejects(connect(seller).account.get(), (error) => {
      assert.ok(error instanceof UnexpectedResponseError);
      assert.match(error.message, /a page of HTML.*baseUrl/);
      return true;
    });
  });

  test("a redirect: UnexpectedResponseError names its target, which gets no request", async () => {
    proxy.decide = () => ({ status: 302, headers: { location: `${proxy.origin}/elsewhere` } });
    await assert.rejects(connect(seller).account.get(), {
      name: "UnexpectedResponseError",
      message: /a redirect to http.*\/elsewhere.*baseUrl/,
    });
    assert.equal(proxy.requests.length, 1);
  });

  test("no service at the address: ConnectionError names it and the reason", async () => {
    const stoa = new Stoa({ baseUrl: await closedOrigin(), apiKey: "k", maxRetries: 0 });
    await assert.rejects(stoa.account.get(), (error: Error) => {
      assert.ok(error instanceof ConnectionError);
      assert.match(error.message, /:\d+\/v1\/account: ECONNREFUSED/);
      return true;
    });
  });

  test("arguments that cannot work: refused before anything is sent", () => {
    assert.throws(() => new Stoa({ baseUrl: "shop.example" }), /baseUrl must be a URL such as/);
    for (const id of ["", ".", ".."])
      assert.throws(() => connect(seller).products.get(id), /An id must not be/);
    assert.throws(() => new Stoa({ baseUrl: proxy.origin, apiKey: "" }), /apiKey is empty/);
    assert.throws(() => new Stoa({ baseUrl: proxy.origin, apiKey: "stoa_…" }), /apiKey has a character/);
  });

  test("a key that expires: the function is asked for it before each try", async () => {
    proxy.decide = (n) => (n < 1 ? { status: 503, body: "" } : "pass");
    const keys = ["expired", seller.key];
    await connect(seller, { apiKey: async () => keys.shift()! }).account.get();
    assert.deepEqual(keys, []);
    assert.equal(proxy.requests[1]!.headers["authorization"], `Bearer ${seller.key}`);
  });

  test("a time limit and an AbortSignal: TimeoutError, AbortError", async () => {
    proxy.decide = () => "hang";
    await assert.rejects(connect(seller, { timeoutMs: 1, maxRetries: 0 }).account.get(), TimeoutError);
    const abort = new AbortController();
    const call = connect(seller).account.get({ signal: abort.signal });
    abort.abort();
    await assert.rejects(call, AbortError);
  });
});

suite("lists", () => {
  test("for await, toArray and page: every item once, with the total", async () => {
    const owner = await market.createUser();
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await createProduct(owner, { title: `Number ${n}` }));
    const stoa = connect(owner);
    const query = { author: "me", limit: 2 };
    const seen: string[] = [];
    for await (const { id } of stoa.products.list(query)) seen.push(id);
    assert.deepEqual(seen.toSorted(), ids.toSorted());
    assert.equal((await stoa.products.list(query).toArray({ limit: 3 })).length, 3);
    const { data, meta, hasMore } = await stoa.products.list(query).page(3);
    assert.deepEqual([data.length, meta.total, hasMore], [1, 5, false]);
  });

  test("toArray with a limit: fetches no page that it does not need", async () => {
    await connect(seller).products.list({ limit: 1 }).toArray({ limit: 1 });
    assert.equal(proxy.requests.length, 1);
  });
});

test("withResponse: status, headers, request id and rate limit", async () => {
  const { data, status, requestId, rateLimit } = await connect(seller).products.get(productId).withResponse();
  assert.deepEqual([data.id, status], [productId, 200]);
  assert.match(requestId ?? "", /^\S+$/);
  assert.ok(rateLimit.limit !== null && rateLimit.remaining !== null && rateLimit.reset !== null);
});

test("a tag that a compressing proxy weakened: If-Match is the service's own again", async () => {
  const [stoa, id] = [connect(seller), await createProduct(seller)];
  const { response } = await stoa.products.get(id).withResponse();
  const etag = response.headers.get("etag");
  const headers = { "if-match": `"other",W/${etag}` };
  assert.equal((await stoa.products.update(id, { title: "As read" }, { headers })).title, "As read");
  await assert.rejects(stoa.products.update(id, { title: "Lost" }, { headers }), {
    code: "PRECONDITION_FAILED",
  });
});

test("unknown fields, values and events: returned as they are", async () => {
  const widened: typeof fetch = async (input, init) => {
    const body = (await (await fetch(input, init)).json()) as { data: object };
    return Response.json({
      ...body,
      data: { ...body.data, type: "HOLOGRAM", novelty: { a: 1 } },
      extra: true,
    });
  };
  const product = await connect(seller, { fetch: widened }).products.get(productId);
  assert.deepEqual(
    [product.type, (product as unknown as { novelty: object }).novelty],
    ["HOLOGRAM", { a: 1 }],
  );
});

test("an upload and a download: the bytes arrive", async () => {
  const stoa = connect(seller);
  const file = new File(["topic,count\nautumn,3\n"], "sample.csv", { type: "text/csv" });
  const { size, url } = await stoa.files.create(productId, { file });
  assert.equal(size, file.size);
  assert.equal(await (await fetch(url)).text(), await file.text());
  const csv = await stoa.analytics.exportRevenue({});
  assert.match(csv.headers.get("content-type") ?? "", /text\/csv/);
  assert.ok((await csv.text()).length > 0);
});

suite("runs", () => {
  const run = { apiKeyId: "sandbox", variables: { topic: "autumn" } };

  test("stream: events in order, text and result", async () => {
    const stoa = connect(seller);
    const types: string[] = [];
    for await (const { type } of stoa.ai.stream({ productId, ...run })) types.push(type);
    assert.equal(types[0], "execution.started");
    assert.equal(types.at(-1), "execution.completed");
    let text = "";
    for await (const piece of stoa.ai.stream({ productId, ...run }).text()) text += piece;
    const { output } = await stoa.ai.stream({ productId, ...run }).result();
    assert.equal(text, output);
  });

  test("stream whose connection breaks off at each place: the text is whole, and the prompt runs once", async () => {
    const stoa = connect(seller);
    const whole = await stoa.ai.execute({ productId, ...run });
    const countRuns = async () => (await stoa.ai.executions.list().page()).meta.total;
    const before = await countRuns();
    proxy.requests.length = 0;
    proxy.decide = (n) => (n < 4 ? { cutAfterBytes: 150 + 60 * n } : "pass");
    let text = "";
    for await (const piece of stoa.ai.stream({ productId, ...run }).text()) text += piece;
    assert.equal(text, whole.output);
    assert.ok(proxy.requests.length > 2, "it was cut off");
    assert.equal(await countRuns(), before + 1);
  });

  test("stream that stops being read: the run is canceled", async () => {
    const stoa = connect(seller);
    let executionId = "";
    for await (const event of stoa.ai.stream({ productId, ...run })) {
      if (event.type === "execution.started") executionId = event.data.executionId;
      break;
    }
    assert.equal(proxy.requests.at(-1)?.url, `/v1/ai/executions/${executionId}/cancel`);
  });

  test("stream that cannot be resumed: throws, and the run is not canceled", async () => {
    proxy.decide = (n) =>
      n === 0 ? { cutAfterBytes: 450 } : { status: 401, body: '{"error":{"message":"x"}}' };
    await assert.rejects(
      connect(seller)
        .ai.stream({ productId, ...run })
        .result(),
      { name: "AuthenticationError" },
    );
    assert.deepEqual(
      proxy.requests.map(({ method }) => method),
      ["POST", "GET"],
    );
  });

  test("an idempotencyKey of undefined: the repeats of a stream have one key", async () => {
    proxy.decide = (n) => (n < 2 ? { cutAfterBytes: 5 } : "pass");
    await connect(seller)
      .ai.stream({ productId, ...run }, { idempotencyKey: undefined })
      .result();
    const keys = proxy.requests.flatMap(({ headers }) => headers["idempotency-key"] ?? []);
    assert.deepEqual([keys.length, new Set(keys).size], [3, 1]);
  });

  test("timeoutMs of the client: limits runs too", async () => {
    proxy.decide = () => "hang";
    const stoa = connect(seller, { timeoutMs: 1, maxRetries: 0 });
    await assert.rejects(stoa.ai.execute({ productId, ...run }), TimeoutError);
  });
});

suite("tries", () => {
  const input = { variables: { topic: "autumn" } };
  let tried: string;
  before(async () => {
    tried = await createProduct(seller, { preview: "Three lines." });
    await allowTries(seller, { productId: tried, apiKeyId: "sandbox" });
  });

  test("stream: the pieces and the end, in one request without an Idempotency-Key", async () => {
    let text = "";
    const ends: string[] = [];
    for await (const event of connect(seller).tryOuts.stream(tried, input)) {
      if (event.type === "output.delta") text += event.data.text;
      else ends.push(event.type);
    }
    const { output } = await connect(seller).tryOuts.run(tried, input);
    assert.deepEqual([text, ends], [output, ["try.completed"]]);
    assert.equal(proxy.requests[0]?.headers["idempotency-key"], undefined);
  });

  test("stream that is cut off or refused: throws, and is not sent again", async () => {
    const read = async (productId: string) => {
      for await (const _ of connect(seller).tryOuts.stream(productId, input));
    };
    proxy.decide = () => ({ cutAfterBytes: 150 });
    await assert.rejects(read(tried), ConnectionError);
    assert.equal(proxy.requests.length, 1);
    proxy.decide = () => "pass";
    await assert.rejects(read(productId), { code: "INVALID_STATE" });
  });
});
