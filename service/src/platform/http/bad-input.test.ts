import assert from "node:assert/strict";
import { after, afterEach, before, suite, test } from "node:test";
import { type Endpoint, type ErrorCode, endpoints, errorCatalogue, type JsonRequest } from "@stoa/contract";
import { allowedCallers } from "../../../test/allowed-callers.ts";
import { buyProduct, createProduct, haiku } from "../../../test/factories.ts";
import { isFullSize, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { openAiStatusOf } from "./openai-error.ts";

let market: Market;
let member: Client;
let enter: (endpoint: Endpoint) => Client;
let productId: string;
const statusOf = (endpoint: Endpoint, code: ErrorCode): number =>
  endpoint.response.kind === "foreign" ? openAiStatusOf(code) : errorCatalogue[code].status;
/** Path parameters of existing objects, so that only the body is invalid. */
let ids: Record<string, string>;
let rowsBefore: Record<string, number>;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
  const seller = await market.createUser();
  productId = await createProduct(member);
  await buyProduct(member, await createProduct(seller));
  const key = { provider: "openai", name: "Mine", key: "sk-0123456789abcdef" };
  const stored = await member.post("/v1/ai/keys", key);
  ids = { productId, providerKeyId: stored.body.data.id };
  enter = await allowedCallers(market, member);
  rowsBefore = await rowCounts();
});
const assertNothingWritten = async () => assert.deepEqual(await rowCounts(), rowsBefore);
// In full size after each test, so that a failure names the request that wrote.
if (isFullSize) afterEach(assertNothingWritten);
after(() => market.close());

async function rowCounts(): Promise<Record<string, number>> {
  const { rows: tables } = await market.query(
    `select table_schema || '.' || table_name as name from information_schema.tables
      where table_schema in ('public', 'fake_provider')
        and table_name not in ('view_salts', 'product_views', 'product_daily_views', 'author_daily_views',
                               'request_logs')`,
  );
  const counts = tables.map(({ name }) => `select '${name}' as name, count(*)::int as count from ${name}`);
  const { rows } = await market.query(counts.join(" union all "));
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

type Body = NonNullable<RequestInit["body"]>;

const pathOf = ({ base, path }: Endpoint) =>
  `${base}${path.replace(/:(\w+)/g, (_, name) => ids[name] ?? "nothing")}`;

function send(endpoint: Endpoint, body: Body, contentType = "application/json"): Promise<Reply> {
  const headers = { "content-type": contentType };
  return enter(endpoint).request(endpoint.method, pathOf(endpoint), { body, headers });
}

function assertRefused(reply: Reply, field: string, status = 400) {
  const code = status === 400 ? "INVALID_REQUEST" : "VALIDATION_ERROR";
  const details = assertError(reply, status, code);
  const fields: string[] = details.errors.map((problem: { field: string }) => problem.field);
  const isNamed = fields.some(
    (name) => name === field || name.startsWith(`${field}[`) || name.startsWith(`${field}.`),
  );
  assert.ok(isNamed, `${field} is not among ${fields.join(", ")}`);
  assert.deepEqual(details.errors[0], { field: details.field, reason: details.reason });
  assert.doesNotMatch(reply.text, /\.ts:\d|node_modules|\bat \w+ \(/, "the answer has no stack");
}

const named = (name: string) => endpoints.find((endpoint) => endpoint.name === name)!;
/** Tests of invalid uploads are in files/. */
const takers = endpoints.flatMap((endpoint) =>
  endpoint.request.kind === "json" ? [{ ...endpoint, ...endpoint.request }] : [],
);
const actions = endpoints.filter(({ method, request }) => request.kind === "none" && method !== "GET");
const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const utf8 = (...bytes: number[]) => new Uint8Array(bytes);

const malformed = [
  ["an array", "[]"],
  ["null", "null"],
  ["a string", '"text"'],
  ["a number", "7"],
  ["malformed JSON", '{"title": }'],
  ["half a JSON text", '{"title": "Hai'],
  ["two JSON texts", "{}{}"],
  ["single quotes", "{'title': 'Haiku'}"],
  ["NaN, which is no JSON", '{"price": NaN}'],
  ["Infinity, which is no JSON", '{"price": Infinity}'],
  ["nothing but a space", " "],
  ["a body that is 10,000 levels deep", deep(10_000)],
  ["a field that is 65 levels deep", `{"title":${deep(64)}}`],
  ["2,001 fields", `{${Array.from({ length: 2_001 }, (_, at) => `"field${at}":1`)}}`],
  ["2,001 elements in lists of a field", `{"title":[[${"1,".repeat(1_000)}1],[${"1,".repeat(996)}1]]}`],
  ["bytes that are no UTF-8", utf8(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
  ["an overlong UTF-8 form", utf8(0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d)],
  ["a NUL byte", utf8(0x7b, 0x00, 0x7d)],
  ["UTF-16", utf8(0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00)],
  ["a name with half a surrogate pair", '{"\\ud800": 1}'],
  ["a name with a NUL", '{"a\\u0000": 1}'],
] as const;
const otherTypes = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/json5",
  ";",
];

/** Endpoints of one kind parse bodies with the same code. */
const kindOf = ({ method, base, request, response }: Endpoint) =>
  [method, base, request.kind, response.kind].join(" ");

const kinds = new Set<string>();
for (const [at, endpoint] of [...takers, ...actions].entries()) {
  // The first endpoint of each kind gets all invalid bodies, every other endpoint one of them in turn. In full size, every
  // endpoint gets all.
  const getsAll = isFullSize || !kinds.has(kindOf(endpoint));
  kinds.add(kindOf(endpoint));
  const someOf = <T>(all: readonly T[]): readonly T[] => (getsAll ? all : [all[at % all.length]!]);

  suite(`${endpoint.name} refuses`, () => {
    for (const [words, body] of someOf(malformed)) {
      test(`${words}: an error of the body`, async () => assertRefused(await send(endpoint, body), "body"));
    }

    // OpenAI adds fields all the time, so its endpoints ignore unknown ones.
    const unknown =
      endpoint.response.kind === "foreign" ? [] : ["nonsense", "constructor", "toString", "api_key"];
    test("an unknown field and __proto__: named", async () => {
      for (const name of ["__proto__", ...unknown]) {
        assertRefused(await send(endpoint, `{"${name}": {"admin": true}}`), name);
      }
    });

    for (const type of someOf(otherTypes)) {
      test(`the media type ${type}`, async () => {
        assertError(
          await send(endpoint, "{}", type),
          statusOf(endpoint, "UNSUPPORTED_MEDIA_TYPE"),
          "UNSUPPORTED_MEDIA_TYPE",
        );
      });
    }

    test("a body without a media type", async () => {
      const reply = await enter(endpoint).request(endpoint.method, pathOf(endpoint), {
        body: utf8(0x7b, 0x7d),
      });
      assertError(reply, statusOf(endpoint, "UNSUPPORTED_MEDIA_TYPE"), "UNSUPPORTED_MEDIA_TYPE");
    });

    if (!getsAll) return;
    test("2,000 fields: names the first hundred; commas and brackets in texts do not count", async () => {
      if (endpoint.response.kind === "foreign") return;
      const text = JSON.stringify("[{,".repeat(2_000));
      const body = `{${Array.from({ length: 1_999 }, (_, at) => `"field${at}":${at ? 1 : text}`)}}`;
      const details = assertError(await send(endpoint, body), 400, "INVALID_REQUEST");
      assert.ok(details.errors.length <= 100, `${details.errors.length}`);
      assert.doesNotMatch(details.reason, /members/);
    });

    test("a body over the limit, with and without Content-Length", async () => {
      const limitKiB = endpoint.base === "/api/auth" ? 256 : 1_024;
      const body = `{"title":"${"x".repeat(limitKiB * 1_024)}"}`;
      // OpenAI's clients would retry after 413.
      const status = endpoint.response.kind === "foreign" ? 400 : 413;
      assertError(await send(endpoint, body), status, "PAYLOAD_TOO_LARGE");
      const init = { body: new Blob([body]).stream(), duplex: "half" } as RequestInit;
      const headers = { "content-type": "application/json" };
      const chunked = await enter(endpoint).request(endpoint.method, pathOf(endpoint), { ...init, headers });
      assertError(chunked, status, "PAYLOAD_TOO_LARGE");
    });
  });
}

const isRequired = ({ body }: JsonRequest, name: string) => !body.shape[name]!.safeParse(undefined).success;

/** In full size all, else one of three invalid values, so that three fields have all. */
let turn = 0;
const someOf = <T>(values: readonly T[]): T[] => sampleOf(values, turn++);

for (const endpoint of takers) {
  const example = endpoint.example as Record<string, unknown>;
  const required = Object.entries(endpoint.body.shape).filter(
    ([, schema]) => !schema.safeParse(undefined).success,
  );

  suite(`${endpoint.name} names the field`, () => {
    for (const [name] of required) {
      test(`missing: ${name}`, async () => {
        const { [name]: _, ...rest } = example;
        const reply = await send(endpoint, JSON.stringify(rest));
        assertRefused(reply, name);
        assert.equal(reply.body.error.details.reason, "is required");
      });
    }

    if (required.length > 0) {
      test("all missing in an empty body", async () => {
        assertRefused(await send(endpoint, ""), required[0]![0]);
        assertRefused(await send(endpoint, "{}"), required[0]![0]);
      });
    }

    for (const [name, value] of Object.entries(example)) {
      test(`of the wrong type: ${name}`, async () => {
        const isWrong = (candidate: unknown): boolean =>
          !endpoint.body.shape[name]!.safeParse(candidate).success &&
          (candidate !== null || endpoint.method === "PATCH" || isRequired(endpoint, name));
        for (const wrong of someOf([true, "seven", 7, [7], { a: 7 }, [], {}, null].filter(isWrong))) {
          assertRefused(await send(endpoint, JSON.stringify({ ...example, [name]: wrong })), name);
        }
        assert.equal(endpoint.body.shape[name]!.safeParse(value).success, true);
        assert.equal(endpoint.body.shape[name]!.safeParse(true).success, false, "something is wrong for it");
      });

      if (typeof value !== "string") continue;
      test(`with text that cannot be stored: ${name}`, async () => {
        for (const bad of someOf(["\\u0000", "a\\u0000b", "\\ud800", "\\udc00\\ud800", "\\ud83dx"])) {
          const body = JSON.stringify({ ...example, [name]: "MARK" }).replace("MARK", bad);
          assertRefused(await send(endpoint, body), name);
        }
      });
    }
  });
}

test("a name that would reach a prototype: refused at any depth", async () => {
  const poison = '{"__proto__": {"admin": "yes"}}';
  const run = `{"productId": "${productId}", "apiKeyId": "sandbox", "variables": ${poison}}`;
  assertRefused(await send(named("ai.execute"), run), "variables.__proto__");
  assertRefused(await send(named("products.update"), `{"models": ${poison}}`), "models.__proto__");
  assertRefused(await send(named("products.update"), `{"tags": ["a", ${poison}]}`), "tags[1].__proto__");
});

suite("refused amounts of money", () => {
  const createWith = (price: string, more = {}) =>
    send(
      named("products.create"),
      JSON.stringify({ ...haiku, ...more, price: "MARK" }).replace('"MARK"', price),
    );
  const changeTo = (price: string) => send(named("products.update"), `{"price":${price}}`);

  for (const price of [
    "0",
    "-0",
    "0.0",
    "-1",
    "-4.99",
    "-1e400",
    "1e400",
    "5e-324",
    "19.999",
    "4.990001",
    "1e300",
    "1000000",
    "999999.999",
    '"4.99"',
    "null",
    "[4.99]",
  ]) {
    test(`a price of ${price}, on creation and on change`, async () => {
      assertRefused(await createWith(price), "price");
      assertRefused(await changeTo(price), "price");
    });
  }

  test("more decimals than its currency has", async () => {
    for (const [price, currency] of [
      ["1.5", "JPY"],
      ["0.01", "JPY"],
      ["1.2345", "KWD"],
      ["100000", "KWD"],
    ] as const) {
      assertRefused(await createWith(price, { currency }), "price");
    }
  });

  test("an unknown or unaccepted currency", async () => {
    for (const currency of ["usd", "US", "DOLLAR", "XXX", "CHF", ""]) {
      assertRefused(await createWith("5", { currency }), "currency");
    }
  });

  test("an expected price or budget that is negative or too large", async () => {
    for (const amount of ["-1", "-0.01", "1e400", '"1"']) {
      const purchase = `{"productId":"${productId}","expectedPrice":${amount}}`;
      assertRefused(await send(named("purchases.create"), purchase), "expectedPrice");
      assertRefused(await send(named("ai.keys.update"), `{"monthlyBudget":${amount}}`), "monthlyBudget");
    }
    for (const budget of ["0", "5e-324", "0.001", "19.999", "1000000.01"]) {
      assertRefused(await send(named("ai.keys.update"), `{"monthlyBudget":${budget}}`), "monthlyBudget");
    }
  });

  test("a filter of a list that is no plain number", async () => {
    for (const price of ["-1", "1e2", "NaN", "Infinity", "0x10", "1,5", "1".repeat(400)]) {
      assertRefused(await member.get(`/v1/products?minPrice=${price}`), "minPrice");
    }
    assertRefused(await member.get("/v1/products?minPrice=5&maxPrice=4"), "minPrice");
  });
});

suite("refused for their length", () => {
  const long = (length: number) => "x".repeat(length);
  const many = (count: number, item = "x") => Array.from({ length: count }, (_, index) => `${item}${index}`);
  for (const [endpoint, field, tooLong, named_] of [
    ["products.create", "title", long(121)],
    ["products.create", "description", long(10_001)],
    ["products.create", "content", long(200_001)],
    ["products.create", "tags", many(21)],
    ["products.create", "tags", [long(41)], "tags[0]"],
    ["products.create", "requirements", many(51)],
    ["products.create", "features", [long(501)], "features[0]"],
    ["products.create", "preview", long(2_001)],
    ["products.create", "changelog", long(5_001)],
    ["products.create", "version", `1.0.${long(40)}`],
    ["products.create", "variables", [{ name: long(65) }], "variables[0].name"],
    ["products.update", "title", long(121)],
    ["products.update", "content", long(200_001)],
    ["reviews.create", "comment", long(5_001)],
    ["purchases.create", "productId", long(101)],
    ["purchases.create", "paymentMethodId", long(101)],
    ["purchases.create", "referralCode", long(101)],
    ["ai.keys.create", "name", long(101)],
    ["ai.keys.create", "key", long(1_001)],
    ["ai.keys.update", "name", long(101)],
    ["ai.execute", "apiKeyId", long(101)],
    ["ai.execute", "options", { model: long(201) }, "options.model"],
  ] as const) {
    test(`${field} of ${endpoint}${named_ ? `, as ${named_}` : ""}`, async () => {
      const { example, ...taker } = takers.find(({ name }) => name === endpoint)!;
      assertRefused(await send(taker, JSON.stringify({ ...example, [field]: tooLong })), named_ ?? field);
    });
  }

  test("a variable over 32 KiB: the error of a variable", async () => {
    const run = { productId, apiKeyId: "sandbox", variables: { topic: long(32 * 1024 + 1), colour: "red" } };
    const reply = await send(named("ai.execute"), JSON.stringify(run));
    assertRefused(reply, "variables.topic", 422);
    assertRefused(reply, "variables.colour", 422);
  });

  test("a query", async () => {
    assertRefused(await member.get(`/v1/products?search=${long(201)}`), "search");
    assertRefused(await member.get(`/v1/products?tag=${long(41)}`), "tag");
  });
});

suite("an unusual query", () => {
  for (const [query, field] of [
    ["search=%00", "search"],
    ["search=a%00b", "search"],
    ["tag=%00", "tag"],
    ["author=%00", "author"],
    ["%00=1", "query"],
    ["__proto__=1", "__proto__"],
    ["__proto__[admin]=1", "__proto__[admin]"],
    ["constructor=1", "constructor"],
    ["page[]=1", "page[]"],
    ["page[number]=1", "page[number]"],
    ["=1", ""],
    ["sort=price;drop table", "sort"],
    ["order=downwards", "order"],
    ["status=sold", "status"],
    ["minRating=6", "minRating"],
    ["minPassRate=1.01", "minPassRate"],
  ] as const) {
    test(`refused: ${query}`, async () => {
      const details = assertError(await member.get(`/v1/products?${query}`), 400, "INVALID_REQUEST");
      if (field) assert.equal(details.field, field);
    });
  }

  for (const query of [
    "search=%ff",
    "search=%zz",
    "search=%",
    "search=%ED%A0%80",
    "search=%27%3B--",
    "search=%5C",
    "search=:*%20%26%20!",
    "category=%ff",
    "tag=%25",
  ]) {
    test(`no match and no fault: ${query}`, async () => {
      const reply = await member.get(`/v1/products?${query}`);
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(reply.body.data, []);
    });
  }

  test("separators only: no query", async () => {
    for (const query of ["", "&", "&&&"]) {
      assert.equal((await member.get(`/v1/products?${query}`)).status, 200, query);
    }
  });
});

test("the refused requests above: wrote nothing", assertNothingWritten);

suite("unusual and valid input", () => {
  const change = named("products.update");
  const titleOf = async (body: Body, contentType?: string) => {
    const reply = await send(change, body, contentType);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data.title;
  };
  // Each of these makes an event, which changes the row counts.
  afterEach(async () => {
    rowsBefore = await rowCounts();
  });

  test("duplicate names: the last counts", async () => {
    assert.equal(await titleOf('{"title":"First","title":7,"title":"Last"}'), "Last");
  });

  test("names, text and surrogate pairs as escapes", async () => {
    assert.equal(await titleOf('{"\\u0074itle":"\\ud83c\\udf38 \\u00e9"}'), "🌸 é");
  });

  test("a byte order mark, and white space", async () => {
    assert.equal(await titleOf('\ufeff\n {"title" : "Space"}\r\n\t'), "Space");
  });

  test("JSON media types in any spelling", async () => {
    for (const type of [
      "Application/JSON",
      "application/json;charset=utf-8",
      "application/merge-patch+json",
    ]) {
      assert.equal(await titleOf(`{"title":"${type}"}`, type), type);
    }
  });

  test("brackets and commas inside texts: count as neither depth nor members", async () => {
    for (const quotes of ['"', '"\\"', "\\"]) {
      const description = `${quotes}${deep(500)}${",".repeat(3_000)}${deep(500)}`;
      assert.equal(await titleOf(JSON.stringify({ description, title: "Deep" })), "Deep");
    }
  });

  test("a body of almost 1 MiB", async () => {
    const padding = " ".repeat(1024 * 1024 - 30);
    assert.equal(await titleOf(`{"title":"Large"}${padding}`), "Large");
  });

  test("prices at the limits: returned as sent", async () => {
    for (const [price, currency] of [
      [0.01, "USD"],
      [999_999.99, "USD"],
      [1, "JPY"],
      [99_999_999, "JPY"],
      [0.001, "KWD"],
      [99_999.999, "KWD"],
    ] as const) {
      const created = await member.post("/v1/products", { ...haiku, price, currency });
      assert.equal(created.status, 201, created.text);
      const { data } = (await member.get(`/v1/products/${created.body.data.id}`)).body;
      assert.deepEqual([data.price, data.currency], [price, currency]);
    }
  });
});
