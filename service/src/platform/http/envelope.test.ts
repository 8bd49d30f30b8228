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

suite("an answer", () => {
  test("of one thing holds success, data and meta, and nothing else", async () => {
    const reply = await seller.post("/v1/products", haiku);
    assert.equal(reply.status, 201);
    assert.equal(reply.headers.get("content-type"), "application/json; charset=utf-8");
    assert.deepEqual(Object.keys(reply.body), ["success", "data", "meta"]);
    assert.equal(reply.body.success, true);
    assert.deepEqual(Object.keys(reply.body.meta), ["timestamp", "request_id"]);
    assert.equal(reply.body.meta.timestamp, market.clock.now.toISOString());
  });

  test("of a list holds an array, and page, limit and total in meta", async () => {
    const reply = await seller.get("/v1/products?limit=2&page=2");
    assert.equal(reply.body.data.length, 2);
    const { timestamp, request_id, ...paging } = reply.body.meta;
    assert.deepEqual(paging, { page: 2, limit: 2, total: 5 });
    assert.ok(timestamp && request_id);
    assert.deepEqual(Object.keys(reply.body), ["success", "data", "meta"]);
  });

  test("of an error holds code, message, details, a link to the docs, and meta", async () => {
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

  test("to an error links to a page of the docs that explains its code", async () => {
    const reply = await seller.get("/v1/products/prod_nothing");
    const page = await market.as(null).get(reply.body.error.docUrl);
    assert.equal(page.status, 200);
    assert.match(page.text, /id="PRODUCT_NOT_FOUND"/);
  });
});

suite("the request id", () => {
  for (const id of ["a", "My_request-1.2", "x".repeat(128)]) {
    test(`is kept when it is ${id.length} good characters such as ${id.slice(0, 14)}`, async () => {
      const reply = await seller.get("/v1/products", { "x-request-id": id });
      assert.equal(reply.headers.get("x-request-id"), id);
      assert.equal(reply.body.meta.request_id, id);
    });
  }

  for (const id of ["x".repeat(129), "with space", "<script>", "a/b", "é"]) {
    test(`is made anew when the client's is ${id.slice(0, 12)} (${id.length})`, async () => {
      const reply = await seller.get("/v1/products", { "x-request-id": id });
      assert.match(reply.body.meta.request_id, /^[0-9a-f-]{36}$/);
      assert.equal(reply.headers.get("x-request-id"), reply.body.meta.request_id);
    });
  }

  test("differs from request to request, and is in errors too", async () => {
    const [first, second] = [await seller.get("/v1/nothing"), await seller.get("/v1/nothing")];
    assert.notEqual(first.body.meta.request_id, second.body.meta.request_id);
    assert.equal(first.headers.get("x-request-id"), first.body.meta.request_id);
  });
});

suite("the Link header", () => {
  test("on the first page has first, next and last", async () => {
    const { headers } = await seller.get("/v1/products?limit=2");
    assert.deepEqual(linksOf(headers.get("link")), {
      first: "/v1/products?limit=2&page=1",
      next: "/v1/products?limit=2&page=2",
      last: "/v1/products?limit=2&page=3",
    });
  });

  test("in the middle has prev too, and following it walks through every item once", async () => {
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

  test("on the last page has no next", async () => {
    const { headers } = await seller.get("/v1/products?limit=2&page=3");
    assert.deepEqual(Object.keys(linksOf(headers.get("link"))), ["first", "prev", "last"]);
  });

  test("keeps the filters, with what is special in them escaped", async () => {
    const search = 'haiku & <more> ,;"é';
    const { headers } = await seller.get(`/v1/products?search=${encodeURIComponent(search)}&type=prompt`);
    const first = new URL(linksOf(headers.get("link"))["first"]!, market.origin);
    assert.equal(first.searchParams.get("search"), search);
    assert.equal(first.searchParams.get("type"), "prompt");
  });

  test("never holds the api_key, however its name is written", async () => {
    for (const name of ["api_key", "api%5Fkey"]) {
      const reply = await market.as(null).get(`/v1/products?limit=1&${name}=${seller.key}`);
      assert.equal(reply.status, 200, reply.text);
      assert.match(reply.headers.get("link") ?? "", /rel="next"/);
      assert.doesNotMatch(reply.headers.get("link") ?? "", /stoa_|api/);
    }
  });

  test("of an empty list has one page", async () => {
    const { headers } = await seller.get("/v1/purchases");
    assert.deepEqual(linksOf(headers.get("link")), {
      first: "/v1/purchases?page=1",
      last: "/v1/purchases?page=1",
    });
  });
});

suite("a page", () => {
  test("past the end is 200 with an empty array and the true total", async () => {
    const reply = await seller.get("/v1/products?page=99&limit=2");
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.body.data, []);
    assert.deepEqual([reply.body.meta.page, reply.body.meta.total], [99, 5]);
    assert.equal(linksOf(reply.headers.get("link"))["prev"], "/v1/products?limit=2&page=3");
  });

  test("has 20 items unless the client says how many", async () => {
    assert.equal((await seller.get("/v1/products")).body.meta.limit, 20);
  });

  for (const limit of [1, 100]) {
    test(`may have ${limit} items`, async () => {
      assert.equal((await seller.get(`/v1/products?limit=${limit}`)).body.meta.limit, limit);
    });
  }

  const wrong = ["limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=ten", "limit=1e1", "limit=0x10"];
  for (const query of [...wrong, "page=0", "page=-1", "page=1.5", "page=9999999999999999999"]) {
    test(`of ${query} is refused by the name of the parameter`, async () => {
      const [field] = query.split("=");
      assertError(await seller.get(`/v1/products?${query}`), 400, "INVALID_REQUEST", field);
    });
  }
});

suite("unknown input", () => {
  test("in the query is refused, every name of it told at once", async () => {
    const details = assertError(
      await seller.get("/v1/products?serach=x&pagee=1"),
      400,
      "INVALID_REQUEST",
      "serach",
    );
    assert.deepEqual(fieldsOf(details), ["serach", "pagee"]);
  });

  test("in the query of a single resource or an action is refused too", async () => {
    const id = await createProduct(seller);
    assertError(await seller.get(`/v1/products/${id}?fields=title`), 400, "INVALID_REQUEST", "fields");
    assertError(await seller.post(`/v1/products/${id}/unpublish?force=1`), 400, "INVALID_REQUEST", "force");
    await seller.delete(`/v1/products/${id}`);
  });

  test("in a body is refused, every field of it told at once, each by its path", async () => {
    const body = { ...haiku, colour: "red", prize: 1, variables: [{ name: "topic", colour: "red" }] };
    const details = assertError(await seller.post("/v1/products", body), 400, "INVALID_REQUEST");
    assert.deepEqual(fieldsOf(details).sort(), ["colour", "prize", "variables[0].colour"]);
  });

  test("in the body of an action that takes none is refused", async () => {
    const reply = await seller.post("/v1/products/prod_any/publish", { now: true });
    assertError(reply, 400, "INVALID_REQUEST", "now");
  });

  test("is told for at most a hundred fields, so that the answer stays small", async () => {
    const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`field${index}`, 1]));
    const reply = await seller.post("/v1/products", { ...haiku, ...many });
    const details = assertError(reply, 400, "INVALID_REQUEST", "field0");
    assert.equal(details.errors.length, 100);
    assert.ok(reply.text.length < 20_000, `${reply.text.length} characters`);
  });

  test("wrong and missing fields are told at once, in the order of the schema", async () => {
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

test("a parameter given twice is refused by its name, for each list", async () => {
  for (const path of ["/v1/products", "/v1/purchases", "/v1/events", "/v1/ai/executions", "/v1/ai/keys"]) {
    assertError(await seller.get(`${path}?page=1&page=2`), 400, "INVALID_REQUEST", "page");
  }
  assertError(await seller.get("/v1/products?search=a&search=b"), 400, "INVALID_REQUEST", "search");
});
