import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client as Account, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type AccountEvent, Stoa } from "../src/index.ts";
import { sign, unwrap, WebhookError } from "../src/webhooks.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";

let market: Market;
let proxy: FaultProxy;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: true } }, now: () => new Date() });
  proxy = await startFaultProxy(market.origin);
});
after(async () => {
  await proxy.close();
  await market.close();
});

const connect = ({ key }: Account) => new Stoa({ baseUrl: `${proxy.origin}/v1`, apiKey: key });

async function take(events: AsyncIterable<AccountEvent>, count: number): Promise<AccountEvent[]> {
  const taken: AccountEvent[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

suite("events.listen", () => {
  test("over connections that break off: each event once, in order", async () => {
    const seller = await market.createUser();
    const stoa = connect(seller);
    proxy.decide = (n) => (n % 2 === 0 ? { cutAfterBytes: 700 } : "pass");
    const start = "evt_00000000000000000000000000";
    for (let n = 0; n < 6; n++) await createProduct(seller, { title: `Event ${n}` });
    const events = await take(stoa.events.listen({ after: start, types: ["product.published"] }), 6);
    proxy.decide = () => "pass";
    const stored = await stoa.events.list({ type: "product.published" }).toArray();
    assert.deepEqual(
      events.map(({ id }) => id),
      stored.map(({ id }) => id).toReversed(),
    );
  });

  test("after an event that does not exist: NotFoundError", async () => {
    const stoa = connect(await market.createUser());
    await assert.rejects(take(stoa.events.listen({ after: "evt_unknown" }), 1), { code: "EVENT_NOT_FOUND" });
  });
});

/** Receives the first delivery of a new endpoint's test event. */
async function receiveDelivery(owner: Account, input: object = {}) {
  const deliveries: { body: Buffer<ArrayBuffer>; headers: IncomingHttpHeaders }[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    deliveries.push({ body: Buffer.from(await buffer(request)), headers: request.headers });
    response.end();
    resolve();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const stoa = connect(owner);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const { id, secret } = await stoa.webhooks.create({ url, ...input });
  await stoa.webhooks.test(id);
  await promise;
  server.close();
  return { secret, ...deliveries[0]! };
}

const withoutStandard = (headers: IncomingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("webhook-")));

suite("webhooks", () => {
  test("a delivery of the service: unwrap returns its event", async () => {
    const { body, headers, secret } = await receiveDelivery(await market.createUser());
    const event = await unwrap(body, headers, secret);
    assert.equal(event.type, "test");
    assert.deepEqual(
      await unwrap(body.toString(), new Headers(headers as Record<string, string>), ["whsec_AAAA", secret]),
      event,
    );
    assert.deepEqual(await unwrap(body, withoutStandard(headers), secret), event);
    assert.deepEqual(await unwrap(body, { ":path": "/", ...headers }, secret), event);
  });

  test("the forms of X-Service-Signature: each is accepted", async () => {
    const owner = await market.createUser();
    const prefixed = await receiveDelivery(owner, { signaturePrefix: true });
    assert.equal(
      (await unwrap(prefixed.body, withoutStandard(prefixed.headers), prefixed.secret)).type,
      "test",
    );
    const bodyOnly = await receiveDelivery(owner, { signatureContent: "body" });
    const headers = withoutStandard(bodyOnly.headers);
    await assert.rejects(unwrap(bodyOnly.body, headers, bodyOnly.secret), { problem: "signature" });
    const event = await unwrap(bodyOnly.body, headers, bodyOnly.secret, { allowsBodySignature: true });
    assert.equal(event.type, "test");
  });

  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  const body = JSON.stringify({ id: "evt_1", type: "test", created: "2026-01-01T00:00:00.000Z", data: {} });

  test("sign: unwrap accepts its headers", async () => {
    const headers = await sign(body, secret);
    assert.equal((await unwrap(body, headers, secret)).id, "evt_1");
    assert.equal((await unwrap(body, withoutStandard(headers), secret)).id, "evt_1");
  });

  test("what is wrong: WebhookError names the usual mistake", async () => {
    const headers = await sign(body, secret);
    const now = Date.now();
    const old = await sign(body, secret, { timestamp: Math.floor(now / 1_000) - 3_600 });
    const cases: [string, () => Promise<unknown>, RegExp][] = [
      ["parsed-body", () => unwrap(JSON.parse(body), headers, secret), /parsed already.*express\.raw/],
      ["signature", () => unwrap(`${body} `, headers, secret), /another endpoint.*raw bytes/],
      [
        "signature",
        () => unwrap(body, headers, `whsec_${Buffer.alloc(32, 8).toString("base64")}`),
        /another endpoint/,
      ],
      ["signature", () => unwrap(body, { ...headers, "webhook-signature": "v1,!!" }, secret), /./],
      ["timestamp", () => unwrap(body, old, secret, { now }), /360[01] seconds old.*clock/],
      [
        "timestamp",
        () => unwrap(body, { ...headers, "webhook-timestamp": "soon" }, secret),
        /NaN seconds old/,
      ],
      ["missing-header", () => unwrap(body, {}, secret), /no delivery/],
      ["secret-format", () => unwrap(body, headers, "not base64!"), /whsec_/],
    ];
    for (const [problem, call, message] of cases)
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof WebhookError);
        assert.deepEqual([error.problem, message.test(error.message)], [problem, true], error.message);
        return true;
      });
  });
});
