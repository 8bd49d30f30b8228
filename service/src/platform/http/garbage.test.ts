import assert from "node:assert/strict";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type Endpoint, endpoints, errorCatalogue, errorsOf, fieldsOf, statusesOf } from "@stoa/contract";
import fc from "fast-check";
import { decodeJwt } from "jose";
import { allowedCallers } from "../../../test/allowed-callers.ts";
import { anyCharacter } from "../../../test/any-character.ts";
import { startEvaluation, storeTestSet } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createOAuthClient, requestTokens } from "../../../test/oauth.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { picture, sendImage, uploadFile } from "../../../test/uploads.ts";
import { createWorkflow, startExecution } from "../../../test/workflows.ts";
import { toId } from "../../core/ids.ts";
import { openAiStatusOf } from "./openai-error.ts";

/** Each has at least two requests for every endpoint. */
const ROUNDS = isFullSize ? 9 : 1;

let market: Market;
let member: Client;
let enter: (endpoint: Endpoint) => Client;
/** Ids of existing objects, so that random requests get beyond 404. */
let ids: Record<string, string[]>;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
  const seller = await market.createUser();
  const bought = await createProduct(seller);
  const orderId = await buyProduct(member, bought);
  const run = { productId: bought, apiKeyId: "sandbox", variables: { topic: "rain" } };
  const { executionId } = (await member.post("/v1/ai/execute", run)).body.data;
  const approval = { id: "ok", type: "approval", timeoutSeconds: 600 };
  const workflowId = await createWorkflow(member, { steps: [approval] });
  const waiting = await startExecution(member, workflowId);
  // No server listens at this address, so that a verification fails at once.
  const key = {
    provider: "openai-compatible",
    name: "Mine",
    key: "sk-0123456789",
    baseUrl: "http://127.0.0.1:9/v1",
  };
  const providerKeyId = (await member.post("/v1/ai/keys", key)).body.data.id;
  const [event] = (await member.get("/v1/events")).body.data;
  const app = await createOAuthClient(market, member);
  await requestTokens(market, member.userId, app);
  const session = await market.createSession(member.userId);
  const [grant] = (await session.get("/v1/account/grants")).body.data;
  const apiKey = { name: "Mine", permissions: { "products:read": true } };
  const review = await member.post(`/v1/products/${bought}/reviews`, { rating: 5, comment: "Good." });
  const own = await createProduct(member);
  await storeTestSet(member, own);
  const evaluationId = await startEvaluation(member, own);
  const discount = { code: "MINE", percentOff: 10 };
  await bookEarnings(market, member, { amountMinor: 5_000n });
  const image = await sendImage(member, own, { bytes: await picture() });
  // No server listens here either, and tests send no webhooks.
  const hook = (await member.post("/v1/webhooks", { url: "http://127.0.0.1:9/" })).body.data.id;
  const since = new Date(market.clock.now.getTime() - 1_000).toISOString();
  ids = {
    webhookId: [hook],
    deliveryId: [(await member.post(`/v1/webhooks/${hook}/test`)).body.data.id],
    recoveryId: [(await member.post(`/v1/webhooks/${hook}/recover`, { since })).body.data.id],
    reviewId: [review.body.data.id],
    fileId: [(await uploadFile(member, own)).id],
    imageId: [image.body.data.id],
    productId: [bought, await createDraft(member), own],
    orderId: [orderId],
    methodId: [(await member.post("/v1/payment-methods", { token: "pm_test_ok" })).body.data.id],
    executionId: [executionId, waiting],
    evaluationId: [evaluationId],
    stepId: ["ok"],
    token: [await share(member, executionId)],
    workflowId: [workflowId, bought],
    providerKeyId: [providerKeyId],
    eventId: [event.id],
    // Another user than the caller, whose sessions must not end.
    userId: [toId("usr", seller.userId)],
    handle: [toId("usr", seller.userId)],
    sessionId: [sessionIdOf(await market.createSession(member.userId))],
    clientId: [app.id],
    grantId: [grant.id],
    version: ["1.0.0"],
    provider: ["github", "google"],
    payoutId: [toId("payout", seller.userId)],
    refundId: [await hasRefund(member, bought)],
    keyId: [(await session.post("/v1/api-keys", apiKey)).body.data.id],
    discountCodeId: [(await member.post("/v1/discount-codes", discount)).body.data.id],
    // No such objects: their tests have them.
    backupId: [toId("bkp", seller.userId)],
    verificationId: [toId("lvf", seller.userId)],
    jobId: [toId("job", seller.userId)],
    emailId: [toId("mail", seller.userId)],
    queue: ["verify-ledger"],
    restoreId: ["x".repeat(43)],
  };
  enter = await allowedCallers(market, member);
});
after(() => market.close());

/** Of a product that the buyer has used, so that the seller must decide. */
async function hasRefund(member: Client, productId: string): Promise<string> {
  await member.get(`/v1/products/${productId}`);
  const [order] = (await member.get(`/v1/purchases?productId=${productId}`)).body.data;
  return (await member.post(`/v1/purchases/${order.orderId}/refund`, { reason: "other" })).body.data.id;
}

/** The token of a shared run's link. */
async function share(member: Client, executionId: string): Promise<string> {
  const reply = await member.post(`/v1/ai/executions/${executionId}/share`);
  assert.equal(reply.status, 200, reply.text);
  return new URL(reply.body.data.url).pathname.split("/").at(-1)!;
}

const sessionIdOf = ({ key }: Client) => decodeJwt(key).jti!;
const named = (name: string) => endpoints.find((endpoint) => endpoint.name === name)!;

interface Attempt {
  /** By name, so that a counterexample is readable. */
  endpoint: string;
  path: string;
  headers: Record<string, string>;
  body: string | Buffer | null;
}

const oddText = fc.oneof(
  fc.constantFrom("\0", "a\0b", "\ud800", "b\udc00"),
  fc.string({ unit: anyCharacter, maxLength: 60 }),
  fc.string({ maxLength: 300 }),
  fc.constantFrom("", " ", "%00", "%zz", "../../..", "null", "me", "sandbox", "__proto__", "{{a}}", "{{"),
  fc.constantFrom(
    "NaN",
    "-1",
    "0",
    "1e400",
    "99999999999999999999",
    "1.0.0",
    "USD",
    "'; drop table users;--",
    "\u202e",
  ),
  fc.constantFrom(
    "2026-06-15T12:00:00Z",
    "2026-02-30T25:61:61Z",
    "0000-01-01T00:00:00Z",
    "+275760-09-13T00:00:00Z",
  ),
);
const oddNumber = fc.oneof(
  fc.double(),
  fc.double({ min: 0, max: 1_000, noNaN: true }),
  fc.integer({ min: -2, max: 300 }),
  fc.constantFrom(19.999, 4.99, 1e300, 5e-324, -0, Number.MAX_SAFE_INTEGER, 2 ** 31),
);
const oddValue = fc.oneof(
  { weight: 3, arbitrary: oddText },
  { weight: 3, arbitrary: oddNumber },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, [], {}, [null], [[]], [{}]) },
);

const oddId = (names: string[]) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...names) },
    { weight: 2, arbitrary: oddText.map((name) => encodeURIComponent(name.toWellFormed()) || "x") },
    { weight: 2, arbitrary: fc.constantFrom("%zz", "%ff", "%00", "%", "%2e%2e", "..", "x".repeat(3_000)) },
  );

function oddPath(endpoint: Endpoint): fc.Arbitrary<string> {
  const parts = endpoint.path.split("/").slice(1);
  const arbitraries = parts.map((part) =>
    part.startsWith(":") ? oddId(ids[part.slice(1)]!) : fc.constant(part),
  );
  return fc.tuple(...arbitraries).map((chosen) => `${endpoint.base}/${chosen.join("/")}`);
}

/** Mostly known parameters with invalid values. */
function oddQuery(endpoint: Endpoint): fc.Arbitrary<string> {
  const known = Object.entries(endpoint.query.shape);
  const choices = known.map(([name]) => name);
  const good: Record<string, string[]> = {
    page: ["1", "2", "1000000"],
    limit: ["1", "100"],
    sort: ["relevance", "price", "title", "trending", "publishedAt"],
    order: ["asc", "desc"],
    author: ["me", "usr_x"],
    minPrice: ["0", "1", "4.99"],
    currency: ["USD", "JPY", "XXX", "KWD"],
  };
  const name =
    choices.length > 0
      ? fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...choices) }, { weight: 1, arbitrary: oddText })
      : oddText;
  const pair = name.chain((key) =>
    fc
      .oneof(oddText, fc.constantFrom(...(Object.hasOwn(good, key) ? good[key]! : ["writing", "1"])))
      .map((value) => `${encode(key)}=${encode(value)}`),
  );
  const garbage = fc.constantFrom(
    "%ff",
    "%zz=1",
    "&&",
    "a[]=1",
    "a[b]=1",
    "?",
    "=",
    "api_key",
    "search=%ff%00",
  );
  const odd = fc.oneof({ weight: 6, arbitrary: pair }, { weight: 1, arbitrary: garbage });
  return fc.array(odd, { maxLength: choices.length > 0 ? 4 : 1 }).map((pairs) => pairs.join("&"));
}

const encode = (value: string) => encodeURIComponent(value.toWellFormed());

/** Mostly the endpoint's example with one or two fields replaced; else any JSON, or none. */
function oddBody(endpoint: Endpoint): fc.Arbitrary<Attempt["body"]> {
  const example: Record<string, unknown> = "example" in endpoint.request ? endpoint.request.example : {};
  const shape = fieldsOf(endpoint)?.shape;
  const known = [...Object.keys(example), ...Object.keys(shape ?? {})];
  const fields = known.length > 0 ? known : ["nothing"];
  // A number for a number: another type would be refused at the first check.
  const oddField = (name: string) =>
    shape?.[name]?.safeParse(1).success ? fc.oneof(oddNumber, oddNumber, oddValue) : oddValue;
  const replacement = fc.oneof(...fields.map((name) => fc.record({ [name]: oddField(name) })));
  const changes = fc
    .array(replacement, { maxLength: 2 })
    .map((replacements) => Object.assign({}, ...replacements) as object);
  const existing = { productId: fc.constantFrom(...ids["productId"]!) };
  const changed = fc
    .tuple(changes, fc.record(existing), fc.boolean())
    .map(([change, real, useReal]) =>
      JSON.stringify({ ...example, ...("productId" in example && useReal && real), ...change }),
    );
  const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
  const texts = fc.constantFrom(
    "",
    "{",
    "[]",
    "null",
    '"x"',
    '{"__proto__":1}',
    '{"a":1e400}',
    "[".repeat(200),
  );
  return fc.oneof(
    { weight: 12, arbitrary: changed },
    { weight: 2, arbitrary: fc.json({ maxDepth: 4 }) },
    { weight: 1, arbitrary: texts },
    { weight: 1, arbitrary: bytes },
    // An endpoint without a body accepts none only.
    { weight: shape ? 1 : 16, arbitrary: fc.constant(null) },
  );
}

const latin = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 300,
});
const oddHeaders = fc
  .record(
    {
      "content-type": fc.constantFrom(
        "application/json",
        "application/json",
        "application/json; charset=x",
        "text/plain",
        "",
        ";",
      ),
      "idempotency-key": fc.oneof(latin, fc.constantFrom("", "same", "k".repeat(256))),
      "if-match": fc.oneof(latin, fc.constantFrom("*", '"1-author"', 'W/"1"', ",,,")),
      "if-none-match": fc.oneof(latin, fc.constantFrom("*", '"1-author"', ",,,", 'W/"')),
      "x-request-id": latin,
      accept: fc.oneof(latin, fc.constant("text/event-stream")),
      prefer: latin,
      range: fc.constantFrom("bytes=0-1", "bytes=-1", "x"),
      "content-encoding": fc.constantFrom("gzip", "identity"),
      "x-forwarded-for": latin,
    },
    { requiredKeys: ["content-type"] },
  )
  .map((headers) => headers as Record<string, string>);

/** Mostly an accepted file type. */
const fileHeaders = (types: readonly string[]) =>
  fc
    .tuple(oddHeaders, fc.constantFrom(...types), fc.boolean())
    .map(([headers, type, odd]) => (odd ? headers : { ...headers, "content-type": type }));

const attemptsAt = (endpoint: Endpoint) =>
  fc.record<Attempt>({
    endpoint: fc.constant(endpoint.name),
    path: fc
      .tuple(oddPath(endpoint), oddQuery(endpoint))
      .map(([path, query]) => (query ? `${path}?${query}` : path)),
    headers: endpoint.request.kind === "raw" ? fileHeaders(endpoint.request.types) : oddHeaders,
    body: endpoint.method === "GET" ? fc.constant(null) : oddBody(endpoint),
  });

const hasParameters = (endpoint: Endpoint): boolean =>
  endpoint.path.includes(":") || Object.keys(endpoint.query.shape).length > 0;

/** Three at those with a body, which have the most validation. One without parameters refuses only malformed addresses and headers. */
const attemptsPerRound = (endpoint: Endpoint): number =>
  fieldsOf(endpoint) ? 3 : hasParameters(endpoint) ? 2 : 6;

const rounds = () =>
  fc.tuple(
    ...endpoints.flatMap((endpoint) =>
      Array<fc.Arbitrary<Attempt>>(attemptsPerRound(endpoint)).fill(attemptsAt(endpoint)),
    ),
  );

/** `fetch` would normalize the path. */
async function send({ endpoint, path, headers, body }: Attempt) {
  const { hostname, port } = new URL(market.origin);
  const response = Promise.withResolvers<{ status: number; text: string }>();
  const length = body === null ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const { key } = enter(named(endpoint));
  const all = { ...(key && { authorization: `Bearer ${key}` }), ...headers, ...length };
  const sent = request({ hostname, port, path, method: named(endpoint).method, headers: all }, (incoming) => {
    const isStream = incoming.headers["content-type"] === "text/event-stream";
    // A stream does not end.
    if (isStream) incoming.destroy();
    (isStream ? Promise.resolve("") : text(incoming)).then(
      (answer) => response.resolve({ status: incoming.statusCode!, text: answer }),
      response.reject,
    );
  });
  sent.on("error", response.reject);
  sent.end(body ?? undefined);
  return response.promise;
}

/** The endpoint's declared answers; 404 or 405 when the random path is another route. */
function assertDeclared(endpoint: Endpoint, status: number, answer: string) {
  if (status === 304) return assert.equal(answer, "");
  const { response } = endpoint;
  if (status === 200 && (response.kind === "file" || response.kind === "events")) return;
  // Streams are not read.
  if (status === 200 && "canStream" in response && response.canStream && answer === "") return;
  const body = JSON.parse(answer);
  // The server chooses the error format by path, and the random path may be another route.
  const isBare = response.kind === "foreign" && body.success === undefined;
  assert.ok(isBare || (body.meta.request_id && body.meta.timestamp), answer);
  if (status < 300) {
    assert.equal(body.success, isBare ? undefined : true);
    assert.ok(
      statusesOf(endpoint).some((declared) => declared === status),
      `${status} ${answer}`,
    );
    return;
  }
  const code = body.error.code as keyof typeof errorCatalogue;
  assert.equal(body.success, isBare ? undefined : false);
  assert.equal(isBare ? openAiStatusOf(code) : errorCatalogue[code].status, status, answer);
  assert.notEqual(code, "INTERNAL_ERROR");
  const declared = [...errorsOf(endpoint), "NOT_FOUND", "METHOD_NOT_ALLOWED"];
  assert.ok(declared.includes(code), `${endpoint.name} answered ${code}`);
  assert.doesNotMatch(answer, /\.ts:\d|node_modules/, "the answer has no stack");
}

const describeAttempt = ({ endpoint, path, headers, body }: Attempt) =>
  `${named(endpoint).method} ${path}\n${JSON.stringify(headers)}\n${body === null ? "" : JSON.stringify(body.toString())}`;

test("random input at every endpoint: declared answers, never 500", async () => {
  const statusesByEndpoint = new Map<string, Set<number>>();
  const tryOne = async (attempt: Attempt) => {
    const { status, text: answer } = await send(attempt);
    statusesByEndpoint.set(
      attempt.endpoint,
      (statusesByEndpoint.get(attempt.endpoint) ?? new Set()).add(status),
    );
    try {
      assertDeclared(named(attempt.endpoint), status, answer);
    } catch (error) {
      throw new Error(`${describeAttempt(attempt)}\n→ ${status} ${answer.slice(0, 500)}`, { cause: error });
    }
  };
  const property = fc.asyncProperty(rounds(), async (round) => {
    for (const attempt of round) await tryOne(attempt);
  });
  await fc.assert(property, { numRuns: ROUNDS, endOnFailure: true });
  assert.deepEqual(
    [...statusesByEndpoint.keys()].sort(),
    endpoints.map(({ name }) => name).sort(),
    "each endpoint had requests",
  );
  // One round is too little for the chances below.
  if (!isFullSize) return;
  // What takes nothing refuses so little that it depends on the seed whether a request has it.
  const taking = endpoints.filter((endpoint) => fieldsOf(endpoint) || hasParameters(endpoint));
  for (const { name } of taking) {
    const statuses = statusesByEndpoint.get(name) ?? [];
    assert.ok(
      [...statuses].some((status) => status >= 400),
      `${name} was never given garbage`,
    );
  }
  // Otherwise every request would fail at the first check.
  const reached = [...statusesByEndpoint].filter(([, statuses]) =>
    [...statuses].some((status) => status < 300),
  );
  assert.ok(reached.length > endpoints.length / 2, `only ${reached.length} endpoints ever said yes`);
});

test("afterwards: no unexpected error in the log, and the service works", async () => {
  const unexpected = market.logs.filter((line) => line.includes("unexpected error"));
  assert.deepEqual(unexpected.slice(0, 3), []);
  assert.equal((await member.get("/v1/products")).status, 200);
});
