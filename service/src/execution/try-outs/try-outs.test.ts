import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { startCrashingService } from "../../../test/crashing-service.ts";
import { openEventStream } from "../../../test/event-stream.ts";
import { createDraft, createProduct, workflow } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { gatedPieces } from "../../../test/run-streams.ts";
import { createProviderKey, providersAt, startBlockedProvider } from "../../../test/runs.ts";
import { allowTries, createGuest, tryProduct } from "../../../test/tries.ts";
import { becomes } from "../../../test/until.ts";
import { DAY_MS } from "../../core/dates.ts";
import { GUEST_COOKIE } from "../../platform/http/authenticate.ts";
import { deleteOldTries } from "./delete-old-tries.ts";

const SECRET =
  "Compose three lines in the manner of Basho, with a season word and a cut after five syllables, about";
/** More than the operating system buffers of a connection: as JSON, each character has six bytes. */
const LONG_PIECES = Array.from({ length: 40 }, () => "\u0001".repeat(100_000));
const streamTimeouts = { stallMs: 30_000 };
/** `STOA_TEST_TRIES=10000` makes another number of tries. More open connections would need a higher limit of file descriptors. */
const TRIES_AT_ONCE = 500;

let provider: ProviderServer;
let market: Market;
let seller: Client;
let apiKeyId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider), streamTimeouts });
  seller = await market.createUser();
  apiKeyId = await createProviderKey(seller);
});
after(async () => {
  await market.close();
  await provider.close();
});

/** A product on sale that visitors may try. */
async function createTryable(limits: Record<string, unknown> = {}, fields = {}): Promise<string> {
  const productId = await createProduct(seller, {
    content: `${SECRET} {{topic}}.`,
    preview: "Three lines.",
    ...fields,
  });
  await allowTries(seller, { productId, apiKeyId, ...limits });
  return productId;
}
const usedOf = async (productId: string) =>
  (await seller.get(`/v1/products/${productId}/try-out`)).body.data.used;

suite("try-out settings", () => {
  test("set, read, change and delete: the product shows what visitors may know", async () => {
    const productId = await createTryable({ maxPerDay: 5, maxPerVisitorPerDay: 2, model: "gpt-4o" });
    const { tryOut } = (await createGuest(market).get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual(tryOut, {
      ...{ model: "gpt-4o", isSandbox: false, perVisitor: 2, leftToday: 5, captcha: null },
    });
    const path = `/v1/products/${productId}/try-out`;
    const { used, updatedAt, ...settings } = (await seller.get(path)).body.data;
    assert.deepEqual(settings, {
      ...{
        apiKeyId,
        provider: "openai",
        isKeyStored: true,
        model: "gpt-4o",
        maxPerDay: 5,
        maxPerVisitorPerDay: 2,
      },
      ...{ monthlyBudget: 100, maxOutputTokens: 400 },
    });
    assert.equal(used.today.tries, 0);
    await allowTries(seller, { productId, apiKeyId: "sandbox" });
    assert.equal((await seller.get(path)).body.data.provider, "sandbox");
    assert.equal((await seller.delete(path)).status, 200);
    assertError(await seller.delete(path), 409, "INVALID_STATE");
    assertError(await seller.get(path), 409, "INVALID_STATE");
    assertError(await tryProduct(seller, productId), 409, "INVALID_STATE");
    assert.equal((await seller.get(`/v1/products/${productId}`)).body.data.tryOut, null);
  });

  test("workflow, long prompt, foreign product or key, wrong limits: each error names its field", async () => {
    const limits = { apiKeyId, maxPerDay: 5, monthlyBudget: 1 };
    const set = async (productId: string, more = {}, by = seller) =>
      by.put(`/v1/products/${productId}/try-out`, { ...limits, ...more });
    const flow = await createDraft(seller, { type: "WORKFLOW", content: JSON.stringify(workflow) });
    assertError(await set(flow), 422, "VALIDATION_ERROR", "productId");
    const long = await createDraft(seller, { content: "word ".repeat(5_000) });
    assertError(await set(long), 422, "VALIDATION_ERROR", "productId");
    const productId = await createProduct(seller);
    const stranger = await market.createUser();
    assertError(await set(productId, {}, stranger), 404, "PRODUCT_NOT_FOUND");
    const own = await createDraft(stranger);
    assertError(await set(own, {}, stranger), 404, "PROVIDER_KEY_NOT_FOUND");
    const foreign = await createProviderKey(seller, { provider: "mistral" });
    assertError(await set(productId, { apiKeyId: foreign }), 422, "PROVIDER_NOT_SUPPORTED");
    for (const [field, value] of Object.entries({ maxPerDay: 0, monthlyBudget: 0.001, maxOutputTokens: 1e9 }))
      assertError(await set(productId, { [field]: value }), 400, "INVALID_REQUEST", field);
  });
});

suite("POST /products/{id}/try", () => {
  test("guest: gets output, model and duration alone; the third try of two is 429", async () => {
    const productId = await createTryable({ maxPerVisitorPerDay: 2 });
    const guest = createGuest(market);
    provider.next({ answer: { text: "Rain on the quiet roof.", usage: { input: 90, output: 6 } } });
    const { status, body, text } = await tryProduct(guest, productId);
    assert.equal(status, 200, text);
    const { duration, ...rest } = body.data;
    assert.deepEqual(rest, {
      ...{
        output: "Rain on the quiet roof.",
        withheld: false,
        isCut: false,
        model: "gpt-5-mini",
        triesLeft: 1,
      },
    });
    assert.ok(duration >= 0);
    const sent = provider.requests.at(-1)?.body as Record<string, unknown>;
    assert.equal(sent["max_completion_tokens"], 400);
    await tryProduct(guest, productId);
    const refused = await tryProduct(guest, productId);
    assert.equal(assertError(refused, 429, "RATE_LIMIT_EXCEEDED").limit, "visitor");
    assert.equal(refused.headers.get("retry-after"), String(12 * 3_600));
    assert.equal((await tryProduct(createGuest(market), productId)).status, 200, "another visitor");
    const { today, month } = await usedOf(productId);
    assert.deepEqual(today, { tries: 3, completed: 3, withheld: 0, failed: 0 });
    assert.ok(month.tries === 3 && month.cost > 0);
    market.clock.forward(DAY_MS);
    assert.equal((await tryProduct(guest, productId)).status, 200, "the next day");
    await deleteOldTries(market.service.ctx);
  });

  test("no run: not in a history, a count of runs, the log of texts or the statistics", async () => {
    const productId = await createTryable();
    const visitor = await market.createUser();
    provider.next({ answer: { text: "A marked answer QUOKKA." } });
    await tryProduct(visitor, productId, { variables: { topic: "WOMBAT" } });
    for (const member of [visitor, seller])
      assert.deepEqual((await member.get(`/v1/ai/executions?productId=${productId}`)).body.data, []);
    const { rows } = await market.query("select from executions where product_id::text = $1", [productId]);
    assert.equal(rows.length, 0);
    const texts = await market.query("select t::text as text from tries t");
    assert.doesNotMatch(JSON.stringify(texts.rows) + market.logs.join(""), /QUOKKA|WOMBAT/);
  });

  test("stream: first words arrive while the model writes, and an answer with the prompt ends withheld", async () => {
    const productId = await createTryable();
    const visitor = await market.createUser();
    const open = () =>
      openEventStream(
        market.origin,
        visitor.key,
        `/v1/products/${productId}/try`,
        {},
        {
          ...{ variables: { topic: "rain" }, stream: true },
        },
      );
    const gated = gatedPieces();
    const pieces =
      "Rain falls on the roof and every gutter sings until the morning light. ".match(/\S+\s*/g) ?? [];
    provider.next({ stream: { pieces: [...pieces, ...pieces], gate: gated.gate } });
    gated.allow(pieces.length);
    const reader = await open();
    const textOf = ({ events }: typeof reader) =>
      events.map(({ data }) => JSON.parse(data).text ?? "").join("");
    await reader.until(() => textOf(reader).startsWith("Rain falls"));
    gated.allowAll();
    assert.equal(await reader.ended, true);
    assert.equal(reader.events.at(-1)?.type, "try.completed");
    provider.next({ answer: { text: `Of course! ${SECRET} something. Enjoy.` } });
    const leaking = await open();
    assert.equal(await leaking.ended, true);
    assert.ok("Of course! ".startsWith(textOf(leaking)));
    const end = JSON.parse(leaking.events.at(-1)?.data ?? "{}");
    assert.deepEqual([leaking.events.at(-1)?.type, end.withheld], ["try.withheld", true]);
    const { today } = await usedOf(productId);
    assert.deepEqual([today.completed, today.withheld], [1, 1]);
  });

  test("guest that stops reading: ends the call, frees its place at the key, and has used the try", async () => {
    const productId = await createTryable({
      apiKeyId: await createProviderKey(seller, { maxConcurrency: 1 }),
      maxPerVisitorPerDay: 1,
    });
    const gated = gatedPieces();
    // The guard of the prompt holds the first words of an answer back.
    const opening = "Rain falls on the roof and every gutter sings until the morning light. ".repeat(2);
    provider.next({ stream: { pieces: [opening, ...LONG_PIECES], gate: gated.gate } });
    gated.allow(1);
    const cookie = `${GUEST_COOKIE}=${market.service.ctx.guests.cookie().value}`;
    const { stallMs } = streamTimeouts;
    // Of a stream that is read nothing waits: the operating system takes all that it sends.
    streamTimeouts.stallMs = 1;
    const path = `/v1/products/${productId}/try`;
    const input = { variables: { topic: "rain" }, stream: true };
    const reader = await openEventStream(market.origin, null, path, { cookie }, input).finally(() => {
      streamTimeouts.stallMs = stallMs;
    });
    await reader.waitForEvents(1);
    reader.pause();
    gated.allowAll();
    const { today } = await becomes(
      () => usedOf(productId),
      (used) => used.today.failed === 1,
    );
    assert.deepEqual(today, { tries: 1, completed: 0, withheld: 0, failed: 1 });
    reader.resume();
    assert.equal(await reader.ended, false);
    assert.equal((await tryProduct(createGuest(market), productId)).status, 200, "the key is free");
    const again = await market.as(null).post(market.origin + path, { ...input, stream: false }, { cookie });
    assert.equal(assertError(again, 429, "RATE_LIMIT_EXCEEDED").limit, "visitor");
  });

  test("hostile input: each error names the field, and no provider is called", async () => {
    const productId = await createTryable();
    const visitor = await market.createUser();
    const before = provider.requests.length;
    const attempt = (variables: unknown, more = {}) => tryProduct(visitor, productId, { variables, ...more });
    assertError(await attempt({ topic: "x".repeat(8_001) }), 422, "VALIDATION_ERROR", "variables");
    assertError(await attempt({ topic: { deep: 1 } }), 422, "VALIDATION_ERROR", "variables.topic");
    assertError(await attempt({}), 422, "VALIDATION_ERROR", "variables.topic");
    assertError(await attempt({ topic: "a", other: "b" }), 422, "VALIDATION_ERROR", "variables.other");
    assertError(await attempt("text"), 400, "INVALID_REQUEST", "variables");
    assertError(await attempt({ topic: "a" }, { captcha: 1 }), 400, "INVALID_REQUEST", "captcha");
    assertError(await tryProduct(visitor, "prod_unknown"), 404, "PRODUCT_NOT_FOUND");
    assertError(await tryProduct(visitor, await createDraft(seller)), 404, "PRODUCT_NOT_FOUND");
    assertError(await tryProduct(visitor, await createProduct(seller)), 409, "INVALID_STATE");
    assertError(await tryProduct(market.as(null), productId), 401, "INVALID_API_KEY");
    const streamed = await visitor.post(
      `/v1/products/${productId}/try`,
      { variables: { topic: "a" }, stream: true },
      { "idempotency-key": "again" },
    );
    assertError(streamed, 400, "INVALID_REQUEST", "stream");
    assert.equal(provider.requests.length, before);
    assert.equal((await usedOf(productId)).today.tries, 0);
  });

  test("failing provider, budget of the key, deleted key: one error without a word about them, and the try is free", async () => {
    const ownKey = await createProviderKey(seller);
    const productId = await createTryable({ apiKeyId: ownKey, maxPerVisitorPerDay: 1 });
    const guest = createGuest(market);
    const assertUnavailable = async () => {
      const reply = await tryProduct(guest, productId);
      const details = assertError(reply, 503, "SERVICE_UNAVAILABLE");
      assert.deepEqual(details, { source: "marketplace", reason: "try_out_unavailable" });
      // The id of the request is random, and may contain a short word.
      assert.doesNotMatch(JSON.stringify(reply.body.error), /Basho|openai|budget|key/i);
    };
    for (const fault of ["quota", "bad-key", "context", "no-model"] as const) {
      provider.next(fault);
      await assertUnavailable();
    }
    assert.equal((await usedOf(productId)).lastFailure.code, "PROVIDER_NOT_SUPPORTED");
    assert.equal((await usedOf(productId)).today.failed, 4);
    await seller.patch(`/v1/ai/keys/${ownKey}`, { monthlyBudget: 0.01 });
    await market.query("update provider_keys set spent_usd = 0.01, spent_month = '2026-06-01T00:00:00Z'");
    await assertUnavailable();
    await seller.delete(`/v1/ai/keys/${ownKey}`);
    await assertUnavailable();
    const { isKeyStored, used } = (await seller.get(`/v1/products/${productId}/try-out`)).body.data;
    assert.deepEqual(
      [isKeyStored, used.today.tries],
      [false, 4],
      "a try that the key refused does not count",
    );
  });

  test("budget of the month: no try may pass it, and the next month has a new one", async () => {
    const productId = await createTryable({ model: "gpt-4o", monthlyBudget: 0.01, maxOutputTokens: 400 });
    const usage = { input: 100, output: 400 };
    provider.always({ answer: { text: "Rain.", usage } });
    const visitor = await market.createUser();
    const replies = [];
    for (let count = 0; count < 4; count++) replies.push(await tryProduct(visitor, productId));
    provider.always(null);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 429, 429],
    );
    assert.equal(replies[2]?.body.error.details.limit, "month");
    assert.ok((await usedOf(productId)).month.cost <= 0.01);
    market.clock.forward(20 * DAY_MS);
    assert.equal((await tryProduct(visitor, productId)).status, 200);
  });
});

suite("limits under load", () => {
  test("parallel tries of many visitors at three processes: as many calls as the limit allows", async () => {
    const limit = 20;
    const visitors = Number(process.env["STOA_TEST_TRIES"] ?? runs(300));
    const productId = await createTryable({ maxPerDay: limit, maxPerVisitorPerDay: 1 });
    const nodes = [market.origin, (await market.startNode()).origin, (await market.startNode()).origin];
    const before = provider.requests.length;
    const replies: Reply[] = [];
    const tryInTurn = async () => {
      for (let at = next++; at < visitors; at = next++)
        replies.push(await tryProduct(createGuest(market, nodes[at % nodes.length]), productId));
    };
    let next = 0;
    await Promise.all(Array.from({ length: TRIES_AT_ONCE }, tryInTurn));
    const statuses = Map.groupBy(replies, ({ status }) => status);
    assert.deepEqual([...statuses.keys()].sort(), [200, 429]);
    assert.equal(statuses.get(200)?.length, limit);
    assert.equal(provider.requests.length - before, limit);
    const { tryOut } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.equal(tryOut.leftToday, 0);
  });

  test("process killed during a try: its reservation ends with its lease", async (t) => {
    const blocked = await startBlockedProvider();
    t.after(() => blocked.close());
    const key = await createProviderKey(seller, { provider: "ollama", baseUrl: blocked.url });
    const productId = await createTryable({ apiKeyId: key, model: "some-model", monthlyBudget: 1 });
    const doomed = await startCrashingService(market, "http://127.0.0.1:9");
    const response = tryProduct(createGuest(market, doomed.origin), productId);
    await blocked.arrivals(1);
    doomed.child.kill("SIGKILL");
    await assert.rejects(response);
    await doomed.ended;
    blocked.answer();
    await market.query("update tries set expected_usd = 2 where status = 'running'");
    const visitor = await market.createUser();
    const refused = await tryProduct(visitor, productId);
    assert.equal(assertError(refused, 429, "RATE_LIMIT_EXCEEDED").limit, "month");
    market.clock.forward(5 * 60_000 + 1);
    assert.equal((await tryProduct(visitor, productId)).status, 200);
    const { today } = await usedOf(productId);
    assert.equal(today.failed, 1);
  });
});

suite("captcha", () => {
  test("guest without a valid token: 400; members need none; a silent provider is 503", async (t) => {
    let answer: { status: number; body: string } = { status: 200, body: '{"success":true}' };
    const asked: string[] = [];
    const server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk;
      asked.push(text);
      response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const verifyUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`;
    const captcha = { provider: "turnstile", siteKey: "site", secret: "captcha-secret", verifyUrl } as const;
    const shop = await openMarket({ config: { captcha } });
    t.after(async () => {
      await shop.close();
      server.close();
    });
    const owner = await shop.createUser();
    const productId = await createProduct(owner);
    await allowTries(owner, { productId, apiKeyId: "sandbox" });
    const guest = createGuest(shop);
    const { tryOut } = (await guest.get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual([tryOut.captcha, tryOut.isSandbox], [{ provider: "turnstile", siteKey: "site" }, true]);
    assertError(await tryProduct(guest, productId), 400, "INVALID_REQUEST", "captcha");
    assert.equal(asked.length, 0);
    assert.equal((await tryProduct(guest, productId, { captcha: "solved" })).status, 200);
    assert.deepEqual(Object.fromEntries(new URLSearchParams(asked[0])), {
      ...{ secret: "captcha-secret", response: "solved", remoteip: "127.0.0.1", sitekey: "site" },
    });
    answer = { status: 200, body: '{"success":false,"error-codes":["timeout-or-duplicate"]}' };
    assertError(await tryProduct(guest, productId, { captcha: "old" }), 400, "INVALID_REQUEST", "captcha");
    assert.equal((await tryProduct(await shop.createUser(), productId)).status, 200);
    for (const broken of [
      { status: 500, body: "{}" },
      { status: 200, body: "<html>" },
    ]) {
      answer = broken;
      assertError(await tryProduct(guest, productId, { captcha: "new" }), 503, "SERVICE_UNAVAILABLE");
    }
    assert.doesNotMatch(shop.logs.join(""), /captcha-secret/);
  });
});
