import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { after, before, beforeEach, suite, test } from "node:test";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { deliverAll } from "../../../test/webhooks.ts";
import { toUuid } from "../../core/ids.ts";
import { DeliveryWorker } from "./delivery-worker.ts";
import { Inboxes } from "./inboxes.ts";
import { createSignatureHeaders, generateWebhookSecret } from "./signature.ts";

const JSON_WANTED = { accept: "application/json" };

let market: Market;
let anonymous: Client;
let owner: Client;
let path: string;
before(async () => {
  market = await openMarket();
  anonymous = market.as(null);
  owner = await market.createUser();
});
beforeEach(() => {
  path = `/dev/hooks/${randomUUID()}`;
});
after(() => market.close());

const post = (body: string, headers: Record<string, string> = {}, to = path) =>
  anonymous.request("POST", to, { body, headers });
const arrivals = async () => (await anonymous.get(path, JSON_WANTED)).body.data;
const page = async (to = path) => (await anonymous.get(to, { accept: "text/html" })).text;

const BODY = '{"id":"evt_1","type":"review.created","data":{}}';
function signed(secret: string, input = {}, id = "evt_1"): Record<string, string> {
  const timestamp = Math.floor(market.clock.now.getTime() / 1000);
  const message = { id, attempt: 1, timestamp, body: BODY };
  return createSignatureHeaders("X-Service-", message, [secret], {
    content: "timestamp_body",
    prefix: false,
    ...input,
  });
}

async function hasEndpoint(): Promise<{ id: string; secret: string }> {
  const reply = await owner.post("/v1/webhooks", { url: market.origin + path });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

async function deliver(): Promise<void> {
  const worker = new DeliveryWorker(market.service.ctx, { random: () => 0 });
  await deliverAll(worker);
}

suite("/dev/hooks", () => {
  test("test event: is shown with a valid signature", async () => {
    const { id } = await hasEndpoint();
    assert.equal((await owner.post(`/v1/webhooks/${id}/test`)).status, 201);
    await deliver();
    const [arrival, ...others] = await arrivals();
    assert.deepEqual(others, []);
    assert.equal(JSON.parse(arrival.body).type, "test");
    assert.equal(arrival.signature, "right");
    assert.equal(arrival.receivedAt, market.clock.now.toISOString());
    assert.equal(arrival.headers["x-service-attempt"], "1");
    assert.match(await page(), /<a href="[^"]+">test<\/a><span>signature right/);
  });

  test("Accept: application/json: lists messages, newest first, with headers", async () => {
    const reply = await post("first", {
      "x-own": "A",
      "content-type": "text/plain",
    });
    assert.deepEqual([reply.status, reply.body], [200, { received: true }]);
    market.clock.forward(1);
    await post("");
    const { status, headers, body } = await anonymous.get(path, JSON_WANTED);
    assert.deepEqual([status, headers.get("cache-control")], [200, "no-store"]);
    const [last, first] = body.data;
    assert.deepEqual([last.body, first.body, first.headers["x-own"]], ["", "first", "A"]);
    assert.deepEqual(Object.keys(first), ["id", "headers", "body", "receivedAt", "signature"]);
    assert.deepEqual([last.signature, first.signature], ["missing", "missing"]);
    const one = await anonymous.get(`${path}/${first.id}`, JSON_WANTED);
    assert.deepEqual(one.body, { success: true, data: first });
    assert.deepEqual((await anonymous.get("/dev/hooks/empty", JSON_WANTED)).body, {
      success: true,
      data: [],
    });
  });

  test("cookies: are not stored", async () => {
    await post("x", { cookie: "__Host-session=secret" });
    assert.equal((await arrivals())[0].headers.cookie, undefined);
  });

  test("signature: wrong ones are detected in each kind, right ones accepted in any format", async () => {
    const { secret } = await hasEndpoint();
    const other = generateWebhookSecret();
    const forms = [{ content: "body" }, { prefix: true }, { content: "body", prefix: true }];
    for (const input of forms) await post(BODY, signed(secret, input));
    const { "webhook-signature": standard, ...own } = signed(secret);
    await post(BODY, own);
    await post(BODY, {
      "webhook-id": "evt_1",
      "webhook-timestamp": own["webhook-timestamp"]!,
      "webhook-signature": standard!,
    });
    assert.deepEqual(
      new Set((await arrivals()).map(({ signature }: { signature: string }) => signature)),
      new Set(["right"]),
    );
    for (const headers of [
      signed(other),
      { ...signed(secret), "webhook-signature": signed(other)["webhook-signature"]! },
      { ...signed(secret), "X-Service-Signature": signed(other)["X-Service-Signature"]! },
      { ...signed(secret), "webhook-timestamp": "1" },
      { ...signed(secret), "webhook-id": "evt_2" },
      { ...signed(secret), "webhook-timestamp": "x" },
    ]) {
      await post(BODY, headers);
      assert.equal((await arrivals())[0].signature, "wrong");
    }
    await post(`${BODY} `, signed(secret));
    assert.equal((await arrivals())[0].signature, "wrong");
  });

  test("rotation: both secrets are valid during the overlap, and none outside its time", async () => {
    const { id, secret } = await hasEndpoint();
    const rotated = await owner.post(`/v1/webhooks/${id}/rotate-secret`, { overlapHours: 1 });
    for (const known of [secret, rotated.body.data.secret]) await post(BODY, signed(known));
    market.clock.forward(3_600_000);
    await post(BODY, signed(secret));
    const activateAt = new Date(market.clock.now.getTime() + 1).toISOString();
    const planned = await owner.post(`/v1/webhooks/${id}/rotate-secret`, { activateAt });
    await post(BODY, signed(planned.body.data.secret));
    const signatures = (await arrivals()).map(({ signature }: { signature: string }) => signature);
    assert.deepEqual(signatures, ["wrong", "wrong", "right", "right"]);
  });

  test("secret that cannot be opened: messages are still received", async () => {
    const { id, secret } = await hasEndpoint();
    await market.query(
      `update webhook_secrets set sealed_secret = replace(sealed_secret, 'v1.test.', 'v1.lost.') where endpoint_id = $1`,
      [toUuid("whk", id)],
    );
    assert.equal((await post(BODY, signed(secret))).status, 200);
    const rotated = await owner.post(`/v1/webhooks/${id}/rotate-secret`, {});
    await post(BODY, signed(rotated.body.data.secret));
    const signatures = (await arrivals()).map(({ signature }: { signature: string }) => signature);
    assert.deepEqual(signatures, ["right", "unknown"]);
  });

  test("no endpoint for the inbox: a secret can be checked in the form", async () => {
    const secret = generateWebhookSecret();
    await post(BODY, signed(secret));
    const [{ id, signature }] = await arrivals();
    assert.equal(signature, "unknown");
    assert.match(await page(`${path}/${id}`), /The signature was not checked/);
    const check = async (text: string) =>
      (
        await post(
          new URLSearchParams({ secret: text }).toString(),
          { "content-type": "application/x-www-form-urlencoded" },
          `${path}/${id}`,
        )
      ).text;
    assert.match(await check(` ${secret} `), /This secret signed it/);
    assert.match(await check(generateWebhookSecret()), /was made with another secret/);
    assert.match(await check(""), /was made with another secret/);
    assert.equal((await arrivals()).length, 1);
  });

  test("markup in a message: is shown as text", async () => {
    await post('{"type":"<script>alert(1)</script>"}', { "x-evil": "<img src=x>" });
    const [{ id }] = await arrivals();
    for (const text of [await page(), await page(`${path}/${id}`)]) {
      assert.match(text, /&lt;script&gt;alert\(1\)/);
      assert.doesNotMatch(text, /<script(?! type="module" src="\/assets)|<img|style=/);
    }
    assert.match(await page("/dev/hooks"), new RegExp(`href="${path}"`));
  });

  test("body over 256 KiB or invalid name: is refused", async () => {
    assertError(await post("x".repeat(256 * 1024 + 1)), 413, "PAYLOAD_TOO_LARGE");
    assert.equal((await post("x".repeat(256 * 1024))).status, 200);
    for (const name of ["a.b", "%2e%2e", "a%20b", "x".repeat(65)]) {
      assertError(await post("x", {}, `/dev/hooks/${name}`), 404, "NOT_FOUND");
      assertError(await anonymous.get(`/dev/hooks/${name}`, JSON_WANTED), 404, "NOT_FOUND");
    }
    assertError(await anonymous.get(`${path}/nothing`, JSON_WANTED), 404, "NOT_FOUND");
    assertError(await post("secret=x", {}, `${path}/nothing`), 404, "NOT_FOUND");
  });

  test("unknown message, as after a restart: a 404 page", async () => {
    assert.match(await page(`${path}/gone`), /<h1>This page does not exist/);
    assert.match(await page("/dev/hooks/no.name"), /<h1>This page does not exist/);
  });

  test("request from another site: is refused", async () => {
    for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }]) {
      assertError(await post("x", headers), 403, "UNAUTHORIZED");
    }
    assert.deepEqual(await arrivals(), []);
  });

  test("other machines and production: 404", async () => {
    for (const [method, to] of [
      ["GET", "/dev/hooks"],
      ["GET", path],
      ["POST", path],
    ] as const) {
      const status = await new Promise((resolve, reject) => {
        const asking = request(market.origin + to, { method, headers: { host: "evil.example" } }, (reply) => {
          reply.resume();
          resolve(reply.statusCode);
        });
        asking.on("error", reject).end();
      });
      assert.equal(status, 404, `${method} ${to}`);
    }
    const other = await openMarket({ config: { environment: "production", mail: "off" } });
    const replies = [await other.as(null).get("/dev/hooks"), await other.as(null).post(path, {})];
    await other.close();
    for (const reply of replies) assertError(reply, 404, "NOT_FOUND");
  });
});

suite("limits of inboxes", () => {
  const arrival = (id: string, body = "") => ({
    ...{ id, headers: {}, body, receivedAt: new Date(0) },
    signature: "missing" as const,
  });

  test("one inbox: the 50 newest messages", () => {
    const inboxes = new Inboxes();
    for (let at = 0; at < 60; at++) inboxes.put("a", arrival(String(at)));
    assert.deepEqual(
      inboxes.list("a").map(({ id }) => id),
      Array.from({ length: 50 }, (_, at) => String(59 - at)),
    );
  });

  test("many inboxes: the 300 most recently used", () => {
    const inboxes = new Inboxes();
    for (let at = 0; at < 300; at++) inboxes.put(String(at), arrival("x"));
    inboxes.put("0", arrival("y"));
    inboxes.put("new", arrival("x"));
    const names = inboxes.all().map(({ name }) => name);
    assert.equal(names.length, 300);
    assert.deepEqual(names.slice(0, 2), ["new", "0"]);
    assert.deepEqual(inboxes.list("1"), []);
  });

  test("all inboxes: 32 MiB with headers", () => {
    const body = "x".repeat(256 * 1024);
    const headers = { name: "x".repeat(16 * 1024 - 4) };
    for (const [kind, most] of [
      [{ body }, 128],
      [{ headers }, 2_048],
    ] as const) {
      const inboxes = new Inboxes();
      for (let at = 0; at < 3_000; at++)
        inboxes.put(`inbox-${at % 100}`, { ...arrival(String(at)), ...kind });
      assert.equal(
        inboxes.all().reduce((sum, { count }) => sum + count, 0),
        most,
      );
      assert.equal(inboxes.list("inbox-99")[0]?.id, "2999");
    }
  });
});
