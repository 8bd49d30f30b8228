import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { beforeEach, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { assertError, type Client } from "../../../test/market.ts";
import type { ReceivedRequest } from "../../../test/webhook-receiver.ts";
import { HOUR_MS, MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { toUuid } from "../../core/ids.ts";

const { deliver, happens, hasEndpoint, market, newDeliveryWorker, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

type Endpoint = { id: string; secret: string };

async function rotates({ id }: Endpoint, input: object = {}) {
  const reply = await owner.post(`/v1/webhooks/${id}/rotate-secret`, input);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data as Endpoint & { activatesAt: string; oldSecretUntil: string };
}

/** The last delivery that the receiver got. */
async function delivered() {
  await happens(owner);
  await deliver();
  return receiver.received.at(-1)!;
}

const hexOf = (secret: string, { headers, body }: ReceivedRequest) =>
  createHmac("sha256", secret).update(`${headers["x-service-timestamp"]}.${body}`).digest("hex");

/** Whether a Standard Webhooks receiver with only this secret accepts the signature. */
function isAccepted(secret: string, { headers, body }: ReceivedRequest): boolean {
  const named = (name: string) => String(headers[name]);
  const at = new Date(Number(named("webhook-timestamp")) * 1000);
  const expected = new Webhook(secret).sign(named("webhook-id"), at, body);
  return named("webhook-signature").split(" ").includes(expected);
}

/** The indexes of the secrets that signed. */
function signersOf(secrets: string[], received: ReceivedRequest) {
  const named = (header: string) => {
    const value = received.headers[header];
    return value === undefined ? null : secrets.findIndex((secret) => hexOf(secret, received) === value);
  };
  return {
    own: named("x-service-signature"),
    previous: named("x-service-signature-previous"),
    standard: secrets.flatMap((secret, n) => (isAccepted(secret, received) ? [n] : [])),
  };
}

test("overlap: the new secret signs first and the old one also; afterwards only the new one", async () => {
  const endpoint = await hasEndpoint(owner);
  const rotated = await rotates(endpoint, { overlapHours: 2 });
  const secrets = [endpoint.secret, rotated.secret];
  const now = market.clock.now;
  assert.deepEqual(
    [rotated.activatesAt, rotated.oldSecretUntil],
    [now.toISOString(), new Date(now.getTime() + 2 * HOUR_MS).toISOString()],
  );
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: 0, standard: [0, 1] });
  market.clock.forward(2 * HOUR_MS - 1);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: 0, standard: [0, 1] });
  market.clock.forward(1);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: null, standard: [1] });
});

test("overlapHours: 24 by default, 0 to 168", async () => {
  for (const [input, hours] of [
    [{}, 24],
    [{ overlapHours: 0 }, 0],
    [{ overlapHours: 168 }, 168],
    [{ overlapHours: 0.5 }, 0.5],
  ] as const) {
    const endpoint = await hasEndpoint(owner);
    const { oldSecretUntil } = await rotates(endpoint, input);
    assert.equal(Date.parse(oldSecretUntil) - market.clock.now.getTime(), hours * HOUR_MS);
  }
});

test("overlapHours 0: the old secret signs nothing more", async () => {
  const endpoint = await hasEndpoint(owner);
  const rotated = await rotates(endpoint, { overlapHours: 0 });
  const secrets = [endpoint.secret, rotated.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: null, standard: [1] });
});

test("activateAt: the new secret signs from that time", async () => {
  const endpoint = await hasEndpoint(owner);
  const activateAt = new Date(market.clock.now.getTime() + HOUR_MS).toISOString();
  const rotated = await rotates(endpoint, { activateAt, overlapHours: 1 });
  assert.equal(rotated.activatesAt, activateAt);
  const secrets = [endpoint.secret, rotated.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 0, previous: null, standard: [0] });
  market.clock.forward(HOUR_MS - 1);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 0, previous: null, standard: [0] });
  market.clock.forward(1);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: 0, standard: [0, 1] });
  market.clock.forward(HOUR_MS);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: null, standard: [1] });
});

test("activateAt: at most a week ahead, and not in the past", async () => {
  const endpoint = await hasEndpoint(owner);
  const path = `/v1/webhooks/${endpoint.id}/rotate-secret`;
  const at = (ms: number) => new Date(market.clock.now.getTime() + ms).toISOString();
  await rotates(endpoint, { activateAt: at(7 * 24 * HOUR_MS) });
  for (const ms of [7 * 24 * HOUR_MS + 1, -1])
    assertError(await owner.post(path, { activateAt: at(ms) }), 422, "VALIDATION_ERROR", "activateAt");
  for (const activateAt of ["tomorrow", "2026-06-16", 1_781_600_000])
    assertError(await owner.post(path, { activateAt }), 400, "INVALID_REQUEST", "activateAt");
  for (const overlapHours of [-1, 168.01, "24"])
    assertError(await owner.post(path, { overlapHours }), 400, "INVALID_REQUEST", "overlapHours");
  assertError(await owner.post(path, { overlap: 1 }), 400, "INVALID_REQUEST", "overlap");
});

test("several rotations in one overlap: every secret signs", async () => {
  const endpoint = await hasEndpoint(owner);
  const secrets = [endpoint.secret];
  for (let n = 0; n < 3; n++) {
    market.clock.forward(MINUTE_MS);
    secrets.push((await rotates(endpoint)).secret);
  }
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 3, previous: 2, standard: [0, 1, 2, 3] });
});

test("rotation before a planned one: replaces it", async () => {
  const endpoint = await hasEndpoint(owner);
  const activateAt = new Date(market.clock.now.getTime() + HOUR_MS).toISOString();
  const planned = await rotates(endpoint, { activateAt, overlapHours: 0 });
  const now = await rotates(endpoint, { overlapHours: 24 });
  const secrets = [endpoint.secret, planned.secret, now.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 2, previous: 0, standard: [0, 2] });
  market.clock.forward(2 * HOUR_MS);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 2, previous: 0, standard: [0, 2] });
  market.clock.forward(22 * HOUR_MS);
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 2, previous: null, standard: [2] });
});

test("two rotations planned for one time: the second one replaces the first", async () => {
  const endpoint = await hasEndpoint(owner);
  const activateAt = new Date(market.clock.now.getTime() + HOUR_MS).toISOString();
  const first = await rotates(endpoint, { activateAt });
  const second = await rotates(endpoint, { activateAt });
  market.clock.forward(HOUR_MS);
  const secrets = [endpoint.secret, first.secret, second.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 2, previous: 0, standard: [0, 2] });
});

test("two rotations planned for different times: follow one another", async () => {
  const endpoint = await hasEndpoint(owner);
  const at = (hours: number) => new Date(market.clock.now.getTime() + hours * HOUR_MS).toISOString();
  const first = await rotates(endpoint, { activateAt: at(1), overlapHours: 1 });
  const second = await rotates(endpoint, { activateAt: at(4), overlapHours: 1 });
  const secrets = [endpoint.secret, first.secret, second.secret];
  const signers: unknown[] = [];
  for (let hour = 0; hour <= 5; hour++) {
    signers.push(signersOf(secrets, await delivered()).standard);
    market.clock.forward(HOUR_MS);
  }
  assert.deepEqual(signers, [[0], [0, 1], [1], [1], [1, 2], [2]]);
});

test("ten secrets: the limit, which an overlap of 0 resets", async () => {
  const endpoint = await hasEndpoint(owner);
  for (let n = 1; n < 10; n++) await rotates(endpoint);
  const path = `/v1/webhooks/${endpoint.id}/rotate-secret`;
  assertError(await owner.post(path, {}), 422, "VALIDATION_ERROR", "overlapHours");
  const { secret } = await rotates(endpoint, { overlapHours: 0 });
  assert.equal((await delivered()).headers["webhook-signature"]!.toString().split(" ").length, 1);
  assert.ok(isAccepted(secret, receiver.received.at(-1)!));
  await rotates(endpoint);
  const { rows } = await market.query("select count(*) from webhook_secrets");
  assert.equal(rows[0].count, 2, "expired secrets are deleted");
});

test("20 concurrent rotations: one newest secret, and all others expire", async () => {
  const endpoint = await hasEndpoint(owner);
  const path = `/v1/webhooks/${endpoint.id}/rotate-secret`;
  const replies = await Promise.all(Array.from({ length: 20 }, () => owner.post(path, {})));
  assert.deepEqual(replies.map(({ status }) => status).sort(), [
    ...Array(9).fill(201),
    ...Array(11).fill(422),
  ]);
  const { rows } = await market.query("select count(*) from webhook_secrets where expires_at is null");
  assert.equal(rows[0].count, 1);
});

test("rotation under load: receivers with the old or the new secret accept every delivery", async () => {
  const endpoint = await hasEndpoint(owner);
  const workers = [newDeliveryWorker(), newDeliveryWorker()];
  const first = Array.from({ length: 40 }, (_, n) => happens(owner, `before ${n}`));
  const [rotated] = await Promise.all([rotates(endpoint), ...first, ...workers.map(deliver)]);
  const isAfter = ({ body }: ReceivedRequest) => body.includes("after");
  const second = Array.from({ length: 40 }, (_, n) => happens(owner, `after ${n}`));
  await Promise.all([...second, ...workers.map(deliver)]);
  await deliver();
  assert.equal(receiver.received.length, 80);
  for (const received of receiver.received) {
    assert.ok(isAccepted(endpoint.secret, received), "valid for the old secret");
    const { own, previous } = signersOf([endpoint.secret, rotated.secret], received);
    assert.ok(own === 0 || previous === 0, "one header has the signature of the old secret");
    if (isAfter(received))
      assert.ok(isAccepted(rotated.secret, received) && own === 1, "valid for the new secret");
  }
});

const TABLES = [
  "webhook_endpoints",
  "webhook_secrets",
  "webhook_deliveries",
  "webhook_attempts",
  "idempotency_keys",
];

test("new secret: is in its response and in no row, log or other response", async () => {
  const url = `${receiver.url}/hook`;
  const created = await owner.post("/v1/webhooks", { url }, { "idempotency-key": "once" });
  const endpoint: Endpoint = created.body.data;
  const { secret } = await rotates(endpoint);
  await delivered();
  const { id } = (await owner.get(`/v1/webhooks/${endpoint.id}/deliveries`)).body.data[0];
  const paths = [
    "webhooks",
    `webhooks/${endpoint.id}`,
    `webhooks/${endpoint.id}/stats`,
    `deliveries/${id}`,
    "events",
  ];
  const patched = await owner.patch(`/v1/webhooks/${endpoint.id}`, { description: "x" });
  const answers = [
    patched.text,
    ...(await Promise.all(paths.map(async (path) => (await owner.get(`/v1/${path}`)).text))),
  ];
  const rows = await Promise.all(
    TABLES.map(
      async (table) =>
        (await market.query(`select string_agg(t::text, ' ') as text from ${table} t`)).rows[0].text ?? "",
    ),
  );
  for (const one of [endpoint.secret, secret]) {
    assert.match(one, /^whsec_[A-Za-z0-9+/]{43}=$/);
    for (const place of [...answers, ...rows, ...market.logs]) {
      assert.ok(!place.includes(one.slice(6)));
      assert.ok(!place.includes(Buffer.from(one.slice(6), "base64").toString("hex")));
    }
  }
});

test("repeated Idempotency-Key: returns the endpoint without its secret", async () => {
  const headers = { "idempotency-key": "again" };
  const input = { url: `${receiver.url}/hook` };
  const { body } = await owner.post("/v1/webhooks", input, headers);
  const repeat = await owner.post("/v1/webhooks", input, headers);
  assertError(repeat, 409, "CONFLICT");
  assert.ok(repeat.text.includes(body.data.id) && !repeat.text.includes("whsec_"));
  const path = `/v1/webhooks/${body.data.id}/rotate-secret`;
  await owner.post(path, {}, headers);
  assertError(await owner.post(path, {}, headers), 409, "CONFLICT");
  assert.equal((await owner.get("/v1/webhooks")).body.meta.total, 1);
});

test("sealed secret copied to another endpoint: does not open", async () => {
  const [one, other] = [await hasEndpoint(owner), await hasEndpoint(owner, { url: `${receiver.url}/other` })];
  const uuid = ({ id }: Endpoint) => toUuid("whk", id);
  await market.query(
    `update webhook_secrets set sealed_secret = (select sealed_secret from webhook_secrets where endpoint_id = $1)
      where endpoint_id = $2`,
    [uuid(one), uuid(other)],
  );
  await happens(owner);
  await deliver();
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ["/hook"],
  );
});
