import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Endpoint, endpoints, isFilter } from "@stoa/contract";
import { allowedCallers } from "../../../test/allowed-callers.ts";
import { buyProduct, createProduct, haiku } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { createWorkflow, startExecution } from "../../../test/workflows.ts";
import { flushRequestLog } from "../../accounts/request-logs/request-log.ts";

let market: Market;
let member: Client;
let buyer: Client;
let enter: (endpoint: Endpoint) => Client;
/** Path parameters of existing objects. */
let ids: Record<string, string>;
before(async () => {
  market = await openMarket();
  member = await market.createUser({ role: "seller" });
  buyer = await market.createUser();
  const productId = await createProduct(member);
  const bought = await createProduct(await market.createUser());
  const orderId = await buyProduct(member, bought);
  await buyProduct(buyer, productId);
  const hook = await member.post("/v1/webhooks", { url: "http://127.0.0.1:9/" });
  const approval = { id: "ok", type: "approval", timeoutSeconds: 600 };
  const executionId = await startExecution(member, await createWorkflow(member, { steps: [approval] }));
  ids = { productId, orderId, executionId, webhookId: hook.body.data.id, version: "1.0.0" };
  enter = await allowedCallers(market, member);
});
after(() => market.close());

const pathOf = ({ base, path }: Endpoint) =>
  `${base}${path.replace(/:(\w+)/g, (_, name) => ids[name] ?? "nothing")}`;
const queryOf = (entries: [string, string][]) => {
  const query = new URLSearchParams(entries).toString();
  return query && `?${query}`;
};
const reads = endpoints.filter(({ method }) => method === "GET");
const parametersOf = ({ query }: Endpoint) => Object.entries(query.shape) as [string, Endpoint["query"]][];

/** Their data differs for each request: what is measured, and the log of requests. */
const CHANGING = new Set(["admin.health.get", "admin.database.get", "requestLogs.list"]);

/** A reply without the parts that differ for each request. */
const comparable = ({ status, body, text }: Reply, endpoint?: Endpoint) => {
  if (endpoint && CHANGING.has(endpoint.name)) return [status, Object.keys(body)];
  return body?.meta && body.data !== undefined
    ? [status, body.data, body.meta.total]
    : [status, body?.error?.code ?? text];
};

suite('a filter "all", in any case', () => {
  const filtered = reads.filter(({ query }) =>
    Object.values(query.shape).some((schema) => isFilter(schema as Endpoint["query"])),
  );

  test("declared where the specification's default is all", () => {
    const declared = (name: string) => {
      const endpoint = endpoints.find((each) => each.name === name)!;
      return parametersOf(endpoint).flatMap(([key, schema]) => (isFilter(schema) ? [key] : []));
    };
    assert.deepEqual(declared("products.list"), ["type", "category", "provider", "status", "testedOn"]);
    assert.deepEqual(declared("purchases.list"), ["status", "productId"]);
    assert.deepEqual(declared("analytics.products"), ["productId"]);
    const forgotten = reads.flatMap((endpoint) =>
      parametersOf(endpoint)
        .filter(
          ([name, schema]) =>
            /^(type|types|category|provider|status|productId|product|role|plan|mode)$/.test(name) &&
            !isFilter(schema),
        )
        .map(([name]) => `${endpoint.name} ${name}`),
    );
    // Without it, the list has the models that answer with text.
    assert.deepEqual(forgotten, ["ai.models.list mode"]);
  });

  for (const endpoint of sampleOf(filtered)) {
    test(`${endpoint.name}: the same answer as without it`, async () => {
      const names = parametersOf(endpoint).flatMap(([name, schema]) => (isFilter(schema) ? [name] : []));
      const client = enter(endpoint);
      const plain = await client.get(pathOf(endpoint));
      assert.equal(plain.status, 200, plain.text);
      for (const spelling of ["all", "ALL"]) {
        const reply = await client.get(pathOf(endpoint) + queryOf(names.map((name) => [name, spelling])));
        assert.deepEqual(comparable(reply, endpoint), comparable(plain, endpoint));
      }
    });
  }
});

suite("an empty query parameter", () => {
  for (const endpoint of sampleOf(
    reads.filter((each) => parametersOf(each).length > 0),
    1,
  )) {
    test(`${endpoint.name}: counts as absent`, async () => {
      const client = enter(endpoint);
      const plain = await client.get(pathOf(endpoint));
      const names = parametersOf(endpoint).map(([name]): [string, string] => [name, ""]);
      const empty = await client.get(pathOf(endpoint) + queryOf(names));
      assert.deepEqual(comparable(empty, endpoint), comparable(plain, endpoint));
      const twice = await client.get(pathOf(endpoint) + queryOf([...names, ...names]));
      assert.deepEqual(comparable(twice, endpoint), comparable(plain, endpoint));
    });
  }

  test("GET /products: an empty api_key counts as absent beside a header", async () => {
    assert.equal((await member.get("/v1/products?api_key=")).status, 200);
  });
});

suite("an enumerated query value", () => {
  /** The listed values of each parameter in the OpenAPI document. */
  async function enumerations() {
    const { paths } = (await member.get("/v1/openapi.json")).body;
    return reads.flatMap((endpoint) => {
      const operation = paths[endpoint.path.replace(/:(\w+)/g, "{$1}")].get;
      return operation.parameters.flatMap(
        (parameter: { in: string; name: string; schema: { enum?: string[] } }) =>
          parameter.in === "query" && parameter.schema.enum
            ? [{ endpoint, name: parameter.name, values: parameter.schema.enum }]
            : [],
      ) as { endpoint: Endpoint; name: string; values: string[] }[];
    });
  }

  test("another case: the same answer", async () => {
    const listed = await enumerations();
    assert.ok(listed.length > 20);
    for (const { endpoint, name, values } of sampleOf(listed, 2)) {
      // Requests before this one would appear between two answers.
      if (endpoint.name === "requestLogs.list") await flushRequestLog(market.service.ctx);
      // Values of a list look alike, so the first and the last are enough.
      for (const value of new Set([values[0]!, values.at(-1)!])) {
        const ask = async (text: string) => {
          const own: [string, string][] =
            endpoint.name.startsWith("products.") && name === "status" ? [["author", "me"]] : [];
          return comparable(await enter(endpoint).get(pathOf(endpoint) + queryOf([[name, text], ...own])));
        };
        const right = await ask(value);
        // Of a payout there is none here.
        const expected = endpoint.path.includes(":payoutId") ? 404 : 200;
        assert.equal(right[0], expected, `${endpoint.name} ${name}=${value}`);
        const swapped = value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase();
        assert.deepEqual(await ask(swapped), right, `${endpoint.name} ${name}=${swapped}`);
      }
    }
  });

  for (const path of [
    "/v1/products?currency=usd&sort=PRICE&order=ASC&category=WRITING",
    "/v1/events?type=PRODUCT.PUBLISHED",
    "/v1/analytics/revenue?currency=usd&groupBy=Currency",
  ]) {
    test(`${path}: accepted`, async () => {
      const reply = await member.get(path);
      assert.equal(reply.status, 200, reply.text);
      if (Array.isArray(reply.body.data)) assert.ok(reply.body.data.length > 0);
    });
  }
});

suite("null for an optional field", () => {
  const takers = endpoints.flatMap((endpoint) =>
    endpoint.request.kind === "json" && (endpoint.method === "POST" || endpoint.method === "PUT")
      ? [{ ...endpoint, ...endpoint.request }]
      : [],
  );
  /** The field problems of a reply, which must be equal with and without `null`. */
  const fieldsOf = ({ body }: Reply) =>
    (body.error?.details?.errors ?? []).map(({ field }: { field: string }) => field);

  for (const endpoint of takers) {
    const optional = Object.entries(endpoint.body.shape).flatMap(([name, schema]) =>
      schema.safeParse(undefined).success ? [name] : [],
    );
    if (optional.length === 0) continue;
    test(`${endpoint.name}: counts as absent`, async () => {
      const given = Object.entries(endpoint.example).filter(([name]) => !optional.includes(name));
      const send = async (more: Record<string, null>) => {
        const json = { ...Object.fromEntries(given), ...more };
        return fieldsOf(await enter(endpoint).request(endpoint.method, pathOf(endpoint), { json }));
      };
      const nulls = Object.fromEntries(optional.map((name) => [name, null]));
      assert.deepEqual(await send(nulls), await send({}));
    });
  }

  test("POST /purchases: buys with the default method", async () => {
    const productId = await createProduct(member);
    const nulls = { paymentMethodId: null, referralCode: null, discountCode: null, expectedPrice: null };
    const reply = await buyer.post("/v1/purchases", { productId, ...nulls });
    assert.equal(reply.status, 201, reply.text);
    const refund = { reason: "not_needed", details: null };
    const asked = await buyer.post(`/v1/purchases/${reply.body.data.orderId}/refund`, refund);
    assert.equal(asked.status, 201, asked.text);
  });

  test("in nested objects, lists and maps of providers: counts as absent", async () => {
    const variables = [
      { name: "topic", description: null, required: null, default: null, enum: null, maxLength: null },
    ];
    const models = { openai: "gpt-5-mini", anthropic: null };
    const content = "Write about {{topic}}";
    const created = await member.post("/v1/products", {
      ...haiku,
      content,
      variables,
      models,
      version: null,
    });
    assert.equal(created.status, 201, created.text);
    const productId = created.body.data.id;
    const detail = (await member.get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual([detail.version, detail.models], ["1.0.0", { openai: "gpt-5-mini" }]);
    const options = { model: null, temperature: null, maxTokens: null, version: null };
    const run = { productId, apiKeyId: "sandbox", variables: { topic: "rain" }, options, stream: null };
    const reply = await member.post("/v1/ai/execute", run);
    assert.equal(reply.status, 200, reply.text);
  });

  test("in the options of a union: counts as absent", async () => {
    const productId = await createProduct(member);
    await member.post("/v1/ai/keys", { provider: "sandbox", name: "x", key: "y" });
    const part = { type: "text", text: "rain" };
    const messages = [
      { role: "system", content: [{ type: "text", text: "" }], name: null },
      { role: "user", content: [part], name: null },
    ];
    const body = {
      model: productId,
      messages,
      metadata: { apiKeyId: "sandbox", model: null, variables: null },
    };
    const reply = await member.post("/v1/openai/chat/completions", body);
    assert.equal(reply.status, 200, reply.text);
    const empty = [{ role: "user", content: [{ ...part, text: null }] }];
    const refused = await member.post("/v1/openai/chat/completions", { ...body, messages: empty });
    const without = await member.post("/v1/openai/chat/completions", {
      ...body,
      messages: [{ role: "user", content: [{ type: "text" }] }],
    });
    assert.deepEqual([refused.status, refused.body.error], [without.status, without.body.error]);
  });

  test("in an import line that creates a product: counts as absent", async () => {
    const line = JSON.stringify({ ...haiku, id: null, category: null, preview: null, version: null });
    const init = { headers: { "content-type": "application/jsonl" }, body: line };
    const reply = await member.request("POST", "/v1/products/import?dryRun=TRUE", init);
    assert.equal(reply.status, 200, reply.text);
  });

  test("in a PATCH, for a field that cannot be cleared: an error that names it", async () => {
    for (const field of ["title", "price", "content", "tags"]) {
      const reply = await member.patch(`/v1/products/${ids["productId"]}`, { [field]: null });
      assertError(reply, 400, "INVALID_REQUEST", field);
    }
    const cleared = await member.patch(`/v1/products/${ids["productId"]}`, {
      commissionBasisPoints: null,
    });
    assert.equal(cleared.status, 200, cleared.text);
  });

  test("for a required field or a value of a map: an error that names it", async () => {
    assertError(
      await member.post("/v1/products", { ...haiku, title: null }),
      400,
      "INVALID_REQUEST",
      "title",
    );
    const run = { productId: ids["productId"], apiKeyId: "sandbox", variables: { topic: null } };
    assertError(await member.post("/v1/ai/execute", run), 422, "VALIDATION_ERROR", "variables.topic");
  });
});

suite("HEAD", () => {
  for (const endpoint of sampleOf(reads)) {
    test(`${endpoint.name}: status and type of GET, no body`, async () => {
      const client = enter(endpoint);
      const got = await client.get(pathOf(endpoint));
      const head = await client.request("HEAD", pathOf(endpoint));
      assert.equal(head.status, got.status);
      assert.equal(head.headers.get("content-type"), got.headers.get("content-type"));
      assert.equal(head.text, "");
    });
  }

  for (const path of [
    "/",
    "/docs",
    "/docs/errors",
    "/docs/docs.css",
    "/v1/openapi.json",
    "/healthz",
    "/readyz",
    "/auth/sign-in",
    "/dev/mail",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource/v1",
    "/oauth/jwks",
    "/api/auth/github",
    "/api/auth/callback/github",
  ]) {
    test(`${path}: answers`, async () => {
      const [got, head] = await Promise.all(
        ["GET", "HEAD"].map((method) => market.as(null).request(method, path)),
      );
      assert.notEqual(head!.status, 405);
      if (!path.startsWith("/api/auth")) assert.equal(head!.status, got!.status);
      assert.equal(head!.text, "");
    });
  }

  test("GET /products/{id}: HEAD counts neither as use nor as view", async () => {
    const seller = await market.createUser();
    const productId = await createProduct(seller);
    const orderId = await buyProduct(buyer, productId);
    const { downloadUrl } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    for (const path of [
      `/v1/products/${productId}`,
      `/v1/products/${productId}/versions/1.0.0`,
      downloadUrl,
    ]) {
      const head = await buyer.request("HEAD", path);
      assert.equal(head.status, 200);
    }
    const { rows } = await market.query(
      "select used_at from entitlements e join orders o on o.id = e.order_id order by o.created_at desc, o.id desc limit 1",
    );
    assert.deepEqual(rows, [{ used_at: null }]);
    const first = await buyer.get(`/v1/products/${productId}`);
    assert.equal(first.body.data.access.revealForfeitsInstantRefund, false);
    const head = await buyer.request("HEAD", `/v1/products/${productId}`);
    assert.equal(head.headers.get("etag"), first.headers.get("etag"));
    const again = await buyer.get(`/v1/products/${productId}`, {
      "if-none-match": first.headers.get("etag")!,
    });
    assert.equal(again.status, 304, "the first answer shows the use already");
  });

  test("a path without GET: 405; paths with GET list HEAD", async () => {
    assert.equal((await member.request("HEAD", "/v1/ai/execute")).status, 405);
    const reply = await member.request("DELETE", "/v1/categories");
    assert.equal(reply.headers.get("allow"), "GET, HEAD");
  });
});

suite("a slash at the end of a path", () => {
  for (const endpoint of sampleOf(reads, 1)) {
    test(`${endpoint.name}: the same route`, async () => {
      const client = enter(endpoint);
      const path = pathOf(endpoint);
      const [slashed, plain] = [await client.get(`${path}/`), await client.get(path)];
      assert.deepEqual(comparable(slashed, endpoint), comparable(plain, endpoint));
    });
  }

  test("GET /products/?limit=1: lists", async () => {
    const reply = await member.get("/v1/products/?limit=1");
    assert.deepEqual([reply.status, reply.body.data.length], [200, 1]);
  });

  test("POST /purchases/: the same Idempotency-Key without the slash is the same request", async () => {
    const productId = await createProduct(member);
    const key = { "idempotency-key": "slash" };
    const first = await buyer.post("/v1/purchases/", { productId }, key);
    const again = await buyer.post("/v1/purchases", { productId }, key);
    assert.deepEqual([first.status, again.body], [201, first.body]);
  });

  test("pages: the same page", async () => {
    for (const path of ["/docs/", "/docs/errors/", "/healthz/", "/auth/sign-in/"])
      assert.equal((await market.as(null).get(path)).status, 200, path);
  });
});

suite("sign-in below the base of the API", () => {
  test("/v1/api/auth/*: answers as /api/auth/* for every endpoint of sign-in", async () => {
    const nobody = market.as(null);
    for (const endpoint of endpoints.filter(({ base }) => base === "/api/auth")) {
      const replies = [];
      for (const prefix of ["", "/v1"])
        replies.push(
          await nobody.request(endpoint.method, prefix + pathOf(endpoint), {
            json: endpoint.request.kind === "json" ? {} : undefined,
          }),
        );
      assert.deepEqual(comparable(replies[1]!), comparable(replies[0]!), endpoint.name);
      assert.notEqual(replies[0]!.body?.error?.code, "NOT_FOUND", endpoint.name);
    }
  });

  test("POST /v1/api/auth/verify: signs in with the cookie of our origin, and refuses another site", async () => {
    const email = "newcomer@example.com";
    const nobody = market.as(null);
    assert.equal((await nobody.post("/v1/api/auth/magic-link", { email })).status, 200);
    const mails = (await nobody.get("/dev/mail", { accept: "application/json" })).body.data;
    const token = /token=([\w-]+)/.exec(mails.find(({ to }: { to: string }) => to === email).text)![1]!;
    const foreign = await nobody.post("/v1/api/auth/verify", { token }, { "sec-fetch-site": "cross-site" });
    assertError(foreign, 403, "UNAUTHORIZED");
    const reply = await nobody.post("/v1/api/auth/verify", { token });
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.headers.get("set-cookie") ?? "", /^__Host-session=.*Path=\//);
    assert.ok(reply.body.sessionToken);
  });
});
