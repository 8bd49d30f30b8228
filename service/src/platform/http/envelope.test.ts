import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createProduct, haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  for (let number = 1; number <= 5; number++) await createProduct(seller, { title: `Haiku ${number}` });
});
after(() => market.close());

/** `Link` as a map from rel to target. */
function linksOf(header: string | null): Record<string, string> {
  const links = [...(header ?? "").matchAll(/<([^>]*)>; rel="(\w+)"/g)];
  return Object.fromEntries(links.map(([, target, rel]) => [rel, target]));
}

const fieldsOf = (details: { errors: { field: string }[] }) => details.errors.map(({ field }) => field);

suite("a response", () => {
  test("one object: success, data and meta only", async () => {
    const reply = await seller.post("/v1/products", haiku);
    assert.equal(reply.status, 201);
    assert.equal(reply.headers.get("content-type"), "application/json; charset=utf-8");
    assert.deepEqual(Object.keys(reply.body), ["success", "data", "meta"]);
    assert.equal(reply.body.success, true);
    assert.deepEqual(Object.keys(reply.body.meta), ["timestamp", "request_id"]);
    assert.equal(reply.body.meta.timestamp, market.clock.now.toISOString());
  });

  test("a list: an array, with page, limit and total in meta", async () => {
    const reply = await seller.get("/v1/products?limit=2&page=2");
    assert.equal(reply.body.data.length, 2);
    const { timestamp, request_id, ...paging } = reply.body.meta;
    assert.deepEqual(paging, { page: 2, limit: 2, total: 5 });
    assert.ok(timestamp && request_id);
    assert.deepEqual(Object.keys(reply.body), ["success", "data", "meta"]);
  });

  test("an error: code, message, details, a link to the docs, and meta", async () => {
    const reply = await seller.post("/v1/products", { ...haiku, price: 0 });
    assert.equal(reply.status, 400);
    assert.equal(reply.headers.get("content-type"), "application/json; charset=utf-8");
    assert.deepEqual(Object.keys(reply.body), ["success", "error", "meta"]);
    const problem = { field: "price", reason: "price must be positive" };
    assert.deepEqual(reply.body.error, {
      code: "INVALID_REQUEST",
      message: "price must be positive",
      details: { ...problem, errors: [problem] },
      docUrl: `${market.origin}/docs/errors#INVALID_REQUEST`,
    });
  });

  test("an error: the link leads to the explanation of its code", async () => {
    const reply = await seller.get("/v1/products/prod_nothing");
    const page = await market.as(null).get(reply.body.error.docUrl);
    assert.equal(page.status, 200);
    assert.match(page.text, /id="PRODUCT_NOT_FOUND"/);
  });
});

suite("the request id", () => {
  for (const id of ["a", "My_request-1.2", "x".repeat(128)]) {
    test(`of ${id.length} valid characters such as ${id.slice(0, 14)}: kept`, async () => {
      const reply = await seller.get("/v1/products", { "x-request-id": id });
      assert.equal(reply.headers.get("x-request-id"), id);
      assert.equal(reply.body.meta.request_id, id);
    });
  }

  for (const id of ["x".repeat(129), "with space", "<script>", "a/b", "é"]) {
    test(`${id.slice(0, 12)} (${id.length}) from the client: replaced`, async () => {
      const reply = await seller.get("/v1/products", { "x-request-id": id });
      assert.match(reply.body.meta.request_id, /^[0-9a-f-]{36}$/);
      assert.equal(reply.headers.get("x-request-id"), reply.body.meta.request_id);
    });
  }

  test("different for each request, and in errors too", async () => {
    const [first, second] = [await seller.get("/v1/nothing"), await seller.get("/v1/nothing")];
    assert.notEqual(first.body.meta.request_id, second.body.meta.request_id);
    assert.equal(first.headers.get("x-request-id"), first.body.meta.request_id);
  });
});

suite("the Link header", () => {
  test("the first page: first, next and last", async () => {
    const { headers } = await seller.get("/v1/products?limit=2");
    assert.deepEqual(linksOf(headers.get("link")), {
      first: "/v1/products?limit=2&page=1",
      next: "/v1/products?limit=2&page=2",
      last: "/v1/products?limit=2&page=3",
    });
  });

  test("a middle page: prev too; following next reads each item once", async () => {
    const seen: string[] = [];
    let next: string | undefined = "/v1/products?limit=2&sort=title&order=asc";
    while (next) {
      const reply = await seller.get(next);
      seen.push(...reply.body.data.map(({ title }: { title: string }) => title));
      next = linksOf(reply.headers.get("link"))["next"];
    }
    assert.deepEqual(seen, ["Haiku 1", "Haiku 2", "Haiku 3", "Haiku 4", "Haiku 5"]);
    const middle = linksOf((await seller.get("/v1/products?limit=2&page=2")).headers.get("link"));
    assert.equal(middle["prev"], "/v1/products?limit=2&page=1");
  });

  test("the last page: no next", async () => {
    const { headers } = await seller.get("/v1/products?limit=2&page=3");
    assert.deepEqual(Object.keys(linksOf(headers.get("link"))), ["first", "prev", "last"]);
  });

  test("contains the escaped filters", async () => {
    const search = 'haiku & <more> ,;"é';
    const { headers } = await seller.get(`/v1/products?search=${encodeURIComponent(search)}&type=prompt`);
    const first = new URL(linksOf(headers.get("link"))["first"]!, market.origin);
    assert.equal(first.searchParams.get("search"), search);
    assert.equal(first.searchParams.get("type"), "prompt");
  });

  test("never contains the api_key, however it is spelled", async () => {
    for (const name of ["api_key", "api%5Fkey"]) {
      const reply = await market.as(null).get(`/v1/products?limit=1&${name}=${seller.key}`);
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.headers.get("link") ?? "", /rel="next"/);
      assert.doesNotMatch(reply.headers.get("link") ?? "", /stoa_|api/);
    }
  });

  test("an empty list: one page", async () => {
    const { headers } = await seller.get("/v1/purchases");
    assert.deepEqual(linksOf(headers.get("link")), {
      first: "/v1/purchases?page=1",
      last: "/v1/purchases?page=1",
    });
  });
});

suite("a page", () => {
  test("past the end: 200 with an empty array and the total", async () => {
    const reply = await seller.get("/v1/products?page=99&limit=2");
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.body.data, []);
    assert.deepEqual([reply.body.meta.page, reply.body.meta.total], [99, 5]);
    assert.equal(linksOf(reply.headers.get("link"))["prev"], "/v1/products?limit=2&page=3");
  });

  test("no limit: 20 items", async () => {
    assert.equal((await seller.get("/v1/products")).body.meta.limit, 20);
  });

  for (const limit of [1, 100]) {
    test(`limit ${limit}: allowed`, async () => {
      assert.equal((await seller.get(`/v1/products?limit=${limit}`)).body.meta.limit, limit);
    });
  }

  const wrong = ["limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=ten", "limit=1e1", "limit=0x10"];
  for (const query of [...wrong, "page=0", "page=-1", "page=1.5", "page=9999999999999999999"]) {
    test(`${query}: refused, names the parameter`, async () => {
      const [field] = query.split("=");
      assertError(await seller.get(`/v1/products?${query}`), 400, "INVALID_REQUEST", field);
    });
  }
});

suite("unknown input", () => {
  test("query of a list: refused, all names at once", async () => {
    const details = assertError(
      await seller.get("/v1/products?serach=x&pagee=1"),
      400,
      "INVALID_REQUEST",
      "serach",
    );
    assert.deepEqual(fieldsOf(details), ["serach", "pagee"]);
  });

  test("query of a single resource or an action: refused", async () => {
    const id = await createProduct(seller);
    assertError(await seller.get(`/v1/products/${id}?fields=title`), 400, "INVALID_REQUEST", "fields");
    assertError(await seller.post(`/v1/products/${id}/unpublish?force=1`), 400, "INVALID_REQUEST", "force");
    await seller.delete(`/v1/products/${id}`);
  });

  test("body: refused, all fields at once with their paths", async () => {
    const body = { ...haiku, colour: "red", prize: 1, variables: [{ name: "topic", colour: "red" }] };
    const details = assertError(await seller.post("/v1/products", body), 400, "INVALID_REQUEST");
    assert.deepEqual(fieldsOf(details).sort(), ["colour", "prize", "variables[0].colour"]);
  });

  test("body of an action without one: refused", async () => {
    const reply = await seller.post("/v1/products/prod_any/publish", { now: true });
    assertError(reply, 400, "INVALID_REQUEST", "now");
  });

  test("over a hundred fields: the first hundred", async () => {
    const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`field${index}`, 1]));
    const reply = await seller.post("/v1/products", { ...haiku, ...many });
    const details = assertError(reply, 400, "INVALID_REQUEST", "field0");
    assert.equal(details.errors.length, 100);
    assert.ok(reply.text.length < 20_000, `${reply.text.length} characters`);
  });

  test("wrong and missing fields: reported together, in order of the schema", async () => {
    const details = assertError(
      await seller.post("/v1/products", { title: 7, price: "free" }),
      400,
      "INVALID_REQUEST",
    );
    assert.deepEqual(details.errors, [
      { field: "title", reason: "must be a string" },
      { field: "type", reason: "is required" },
      { field: "price", reason: "must be a number" },
      { field: "content", reason: "is required" },
    ]);
  });
});

test("a repeated parameter: refused, named, on each list", async () => {
  for (const path of ["/v1/products", "/v1/purchases", "/v1/events", "/v1/ai/executions", "/v1/ai/keys"]) {
    assertError(await seller.get(`${path}?page=1&page=2`), 400, "INVALID_REQUEST", "page");
  }
  assertError(await seller.get("/v1/products?search=a&search=b"), 400, "INVALID_REQUEST", "search");
});
