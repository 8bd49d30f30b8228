import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, suite, test } from "node:test";
import type { ErrorCode } from "@stoa/contract";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let member: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
  productId = await createProduct(member);
});
after(() => market.close());

interface RawReply {
  status: number;
  head: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  body: any;
}

/** Sends raw text, since `fetch` would normalize the paths. */
function speak(text: string): Promise<RawReply> {
  const { hostname, port } = new URL(market.origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => {
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      resolve({ status: Number(head.split(" ")[1]), head, body: body === "" ? null : JSON.parse(body) });
    });
  });
}

const ask = (target: string, headers = `Authorization: Bearer ${member.key}\r\n`, method = "GET") =>
  speak(`${method} ${target} HTTP/1.1\r\nHost: stoa\r\n${headers}Connection: close\r\n\r\n`);

function assertRefused(reply: RawReply, status: number, code: ErrorCode) {
  assert.equal(`${reply.status} ${reply.body?.error?.code}`, `${status} ${code}`, JSON.stringify(reply.body));
  assert.match(reply.head, /^x-request-id: \S+$/im);
  assert.match(reply.head, /^x-content-type-options: nosniff$/im);
  assert.doesNotMatch(JSON.stringify(reply.body), /\.ts:\d|node_modules/, "the answer has no stack");
}

suite("an impossible id", () => {
  for (const id of [
    "%zz",
    "%",
    "%f",
    "%ff",
    "%c0%af",
    "%ED%A0%80",
    "%00",
    "prod_%00",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%252e",
    "..",
    "-",
    "'%3B--",
    "{}",
    "\\",
    "<script>",
    "%F0%9F%8C%B8",
    "x".repeat(300),
    "x".repeat(301),
    "x".repeat(10_000),
    "%E4%B8%AD".repeat(1_000),
    `prod_${"0".repeat(5_000)}`,
  ]) {
    const words = id.length > 40 ? `${id.slice(0, 12)}… of ${id.length} characters` : id;
    test(`404 with its noun's code: ${words}`, async () => {
      assertRefused(await ask(`/v1/products/${id}`), 404, "PRODUCT_NOT_FOUND");
      assertRefused(await ask(`/v1/purchases/${id}`), 404, "ORDER_NOT_FOUND");
      assertRefused(await ask(`/v1/products/${id}/reviews`), 404, "PRODUCT_NOT_FOUND");
    });

    test(`without a key 401: ${words}`, async () => {
      assertRefused(await ask(`/v1/products/${id}`, ""), 401, "INVALID_API_KEY");
    });
  }

  test("with an Idempotency-Key: 404", async () => {
    const headers = `Authorization: Bearer ${member.key}\r\nIdempotency-Key: strange\r\n`;
    for (const id of ["%00", "%zz", "x".repeat(10_000)]) {
      assertRefused(await ask(`/v1/products/${id}/publish`, headers, "POST"), 404, "PRODUCT_NOT_FOUND");
    }
  });
});

suite("a path", () => {
  for (const path of [
    "/v1",
    "/v1/",
    "/v1/%zz",
    "/v1/%zz/products",
    "/v1/products/a/b",
    "/v1/../v1/products",
    "/v1//products",
    "/v1/products;a=b",
    "/v1/PRODUCTS",
    "/%761/nothing",
  ]) {
    test(`unknown in the API: 404, without a key 401: ${path}`, async () => {
      assertRefused(await ask(path), 404, "NOT_FOUND");
      assertRefused(await ask(path, ""), 401, "INVALID_API_KEY");
      assertRefused(await ask(`${path}?x=1`, ""), 401, "INVALID_API_KEY");
    });
  }

  for (const path of [
    "/nothing",
    "/%zz",
    "/%00",
    "//",
    "//v1/products",
    "/v1x",
    "/V1/products",
    "/docs/../v1/products",
    "/docs/..%2fapp.ts",
    "/docs/%2e%2e/server.ts",
  ]) {
    test(`unknown outside the API: 404: ${path}`, async () => {
      assertRefused(await ask(path, ""), 404, "NOT_FOUND");
    });
  }

  for (const path of [
    "/%761/products",
    "/v1/product%73",
    "http://elsewhere.example/v1/products",
    "HTTP://stoa:80/v1/products?page=1",
  ]) {
    test(`in another spelling: the same endpoint: ${path}`, async () => {
      assertRefused(await ask(path, ""), 401, "INVALID_API_KEY");
      const reply = await ask(path);
      assert.equal(reply.status, 200);
      assert.equal(reply.body.data[0].id, productId);
      assert.match(reply.head, /^access-control-allow-origin: \*$/im);
    });
  }

  for (const method of ["PUT", "TRACE", "PROPFIND", "SEARCH", "M-SEARCH"]) {
    test(`without ${method}: 405`, async () => {
      const reply = await ask(`/v1/products/${productId}`, undefined, method);
      assert.equal(reply.status, 405);
      assert.match(reply.head, /^allow: GET, HEAD, PATCH, DELETE$/im);
    });
  }
});

suite("invalid HTTP", () => {
  for (const [words, text] of [
    ["a line of garbage", "GARBAGE\r\n\r\n"],
    ["an unknown method", "BREW /v1/products HTTP/1.1\r\nHost: stoa\r\n\r\n"],
    [
      "two lengths",
      "POST /v1/products HTTP/1.1\r\nHost: stoa\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
    ["a length that is no number", "POST /v1/products HTTP/1.1\r\nHost: stoa\r\nContent-Length: x\r\n\r\n"],
    [
      "a length and chunks",
      "POST /v1/products HTTP/1.1\r\nHost: stoa\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    [
      "a broken chunk",
      "POST /v1/products HTTP/1.1\r\nHost: stoa\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ["a NUL in a header", "GET /v1/products HTTP/1.1\r\nHost: stoa\r\nX-A: \0\r\n\r\n"],
    ["a space in the target", "GET /v1/products x HTTP/1.1\r\nHost: stoa\r\n\r\n"],
  ] as const) {
    test(`400 in the envelope, and the connection closes: ${words}`, async () => {
      const reply = await speak(text);
      assertRefused(reply, 400, "INVALID_REQUEST");
      assert.deepEqual(reply.body.error.details.errors, [
        { field: "request", reason: "is not readable as HTTP" },
      ]);
    });
  }

  test("headers or a query that are too long: 400 with the limit", async () => {
    for (const reply of [
      await ask("/v1/products", `X-Long: ${"x".repeat(17_000)}\r\n`),
      await ask(`/v1/products?search=${"x".repeat(17_000)}`),
    ]) {
      assertRefused(reply, 400, "INVALID_REQUEST");
      assert.match(reply.body.error.message, /^headers: must be shorter than 16384 bytes/);
    }
  });

  test("afterwards: the service works", async () => {
    assert.equal((await member.get("/v1/products")).status, 200);
  });
});
