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

/** The newest delivery that came in. */
async function delivered() {
  await happens(owner);
  await deliver();
  return receiver.received.at(-1)!;
}

const hexOf = (secret: string, { headers, body }: ReceivedRequest) =>
  createHmac("sha256", secret).update(`${headers["x-service-timestamp"]}.${body}`).digest("hex");

/** Whether a receiver of Standard Webhooks that knows this secret alone finds its signature. */
function isTaken(secret: string, { headers, body }: ReceivedRequest): boolean {
  const named = (name: string) => String(headers[name]);
  const at = new Date(Number(named("webhook-timestamp")) * 1000);
  const expected = new Webhook(secret).sign(named("webhook-id"), at, body);
  return named("webhook-signature").split(" ").includes(expected);
}

/** Who signed: of the secrets, by the place of each in the list. */
function signersOf(secrets: string[], received: ReceivedRequest) {
  const named = (header: string) => {
    const value = received.headers[header];
    return value === undefined ? null : secrets.findIndex((secret) => hexOf(secret, received) === value);
  };
  return {
    own: named("x-service-signature"),
    previous: named("x-service-signature-previous"),
    standard: secrets.flatMap((secret, n) => (isTaken(secret, received) ? [n] : [])),
  };
}

test("in the overlap the new secret signs first and the old one beside it, and then the new one alone", async () => {
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

test("the overlap is a day when nothing is said, and may be none or a week", async () => {
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

test("without an overlap the old secret signs nothing more", async () => {
  const endpoint = await hasEndpoint(owner);
  const rotated = await rotates(endpoint, { overlapHours: 0 });
  const secrets = [endpoint.secret, rotated.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 1, previous: null, standard: [1] });
});

test("a secret for later signs from its moment on", async () => {
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

test("a secret may be for a week from now, and neither for later nor for the past", async () => {
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

test("of several rotations in one overlap every secret still signs", async () => {
  const endpoint = await hasEndpoint(owner);
  const secrets = [endpoint.secret];
  for (let n = 0; n < 3; n++) {
    market.clock.forward(MINUTE_MS);
    secrets.push((await rotates(endpoint)).secret);
  }
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 3, previous: 2, standard: [0, 1, 2, 3] });
});

test("a rotation takes the place of one that was still to come", async () => {
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

test("of two rotations that are planned for one moment the second holds", async () => {
  const endpoint = await hasEndpoint(owner);
  const activateAt = new Date(market.clock.now.getTime() + HOUR_MS).toISOString();
  const first = await rotates(endpoint, { activateAt });
  const second = await rotates(endpoint, { activateAt });
  market.clock.forward(HOUR_MS);
  const secrets = [endpoint.secret, first.secret, second.secret];
  assert.deepEqual(signersOf(secrets, await delivered()), { own: 2, previous: 0, standard: [0, 2] });
});

test("two rotations may be planned one after the other", async () => {
  const endpoint = await hasEndpoint(owner);
  const at = (hours: number) => new Date(market.clock.now.getTime() + hours * HOUR_MS).toISOString();
  const first = await rotates(endpoint, { activateAt: at(1), overlapHours: 1 });
  const second = await rotates(endpoint, { activateAt: at(4), overlapHours: 1 });
  const secrets = [endpoint.secret, first.secret, second.secret];
  const told: unknown[] = [];
  for (let hour = 0; hour <= 5; hour++) {
    told.push(signersOf(secrets, await delivered()).standard);
    market.clock.forward(HOUR_MS);
  }
  assert.deepEqual(told, [[0], [0, 1], [1], [1], [1, 2], [2]]);
});

test("ten secrets may sign, and no overlap ends all but the new one", async () => {
  const endpoint = await hasEndpoint(owner);
  for (let n = 1; n < 10; n++) await rotates(endpoint);
  const path = `/v1/webhooks/${endpoint.id}/rotate-secret`;
  assertError(await owner.post(path, {}), 422, "VALIDATION_ERROR", "overlapHours");
  const { secret } = await rotates(endpoint, { overlapHours: 0 });
  assert.equal((await delivered()).headers["webhook-signature"]!.toString().split(" ").length, 1);
  assert.ok(isTaken(secret, receiver.received.at(-1)!));
  await rotates(endpoint);
  const { rows } = await market.query("select count(*) from webhook_secrets");
  assert.equal(rows[0].count, 2, "what signs no more is not kept");
});

test("twenty rotations at once leave one newest secret, and each of the others has an end", async () => {
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

test("a rotation under load is seen by no receiver that knows the old secret or the new one", async () => {
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
    assert.ok(isTaken(endpoint.secret, received), "who knows the old one");
    const { own, previous } = signersOf([endpoint.secret, rotated.secret], received);
    assert.ok(own === 0 || previous === 0, "who knows the old one and our own headers alone");
    if (isAfter(received)) assert.ok(isTaken(rotated.secret, received) && own === 1, "who knows the new one");
  }
});

const TABLES = [
  "webhook_endpoints",
  "webhook_secrets",
  "webhook_deliveries",
  "webhook_attempts",
  "idempotency_keys",
];

test("a secret stands in the answer that draws it and nowhere else: no row, no log, no other answer", async () => {
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

test("a repeat of what drew a secret names what was made, and shows the secret no more", async () => {
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

test("a sealed secret that is copied to another endpoint does not open there", async () => {
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
