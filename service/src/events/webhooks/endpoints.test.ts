import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { eventTypes } from "@stoa/contract";
import { assertError, type Client, openMarket } from "../../../test/market.ts";
import { HOUR_MS, MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { deleteOldEvents } from "../feed/events.ts";
import { purgeDeletedEndpoints } from "./endpoints.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

const url = "https://hooks.example.com/stoa";

test("POST, GET, PATCH and DELETE /v1/webhooks: the fields are stored, listed newest first, changed and deleted", async () => {
  const plain = await owner.post("/v1/webhooks", { url });
  assert.equal(plain.status, 201, plain.text);
  const { id, secret, createdAt, ...fields } = plain.body.data;
  assert.match(id, /^whk_/);
  assert.match(secret, /^whsec_/);
  assert.equal(createdAt, market.clock.now.toISOString());
  const byDefault = {
    eventTypes: null,
    enabled: true,
    signatureContent: "timestamp_body",
    signaturePrefix: false,
  };
  assert.deepEqual(fields, { url, description: "", disabledReason: null, ...byDefault });

  const input = {
    url: `${url}/2`,
    description: "Second",
    eventTypes: ["payout.completed", "review.created"],
    enabled: false,
    signatureContent: "body",
    signaturePrefix: true,
  };
  const full = (await owner.post("/v1/webhooks", input)).body.data;
  const { secret: shownOnce, ...stored } = full;
  assert.deepEqual(stored, { id: full.id, createdAt: full.createdAt, disabledReason: "owner", ...input });
  assert.ok(shownOnce);
  const list = await owner.get("/v1/webhooks?limit=1");
  assert.deepEqual([list.body.data, list.body.meta.total], [[stored], 2]);
  assert.deepEqual((await owner.get("/v1/webhooks?page=2&limit=1")).body.data, [
    { id, createdAt, ...fields },
  ]);
  assert.deepEqual((await owner.get(`/v1/webhooks/${full.id}`)).body.data, stored);

  const changed = await owner.patch(`/v1/webhooks/${id}`, {
    description: "First",
    eventTypes: ["review.created"],
  });
  const now = { id, createdAt, ...fields, description: "First", eventTypes: ["review.created"] };
  assert.deepEqual([changed.status, changed.body.data], [200, now]);
  assert.deepEqual(
    (await owner.patch(`/v1/webhooks/${id}`, { eventTypes: null })).body.data.eventTypes,
    null,
  );

  const removed = await owner.delete(`/v1/webhooks/${id}`);
  assert.deepEqual([removed.status, removed.body.data], [200, { id, deleted: true }]);
  for (const method of ["GET", "DELETE"])
    assertError(await owner.request(method, `/v1/webhooks/${id}`), 404, "WEBHOOK_NOT_FOUND");
  assert.deepEqual(
    (await owner.get("/v1/webhooks")).body.data.map((one: { id: string }) => one.id),
    [full.id],
  );
});

test("POST /webhooks: accepts each event type, alone and together", async () => {
  assert.equal(eventTypes.length, 11);
  for (const types of [eventTypes, ...eventTypes.map((type) => [type])]) {
    const { id, eventTypes: chosen } = await hasEndpoint(owner, { eventTypes: types });
    assert.deepEqual(chosen, types);
    await owner.delete(`/v1/webhooks/${id}`);
  }
});

const refusals: [name: string, input: object, field: string][] = [
  ["missing url", { url: undefined }, "url"],
  ["url as a number", { url: 1 }, "url"],
  ["URL without a scheme", { url: "hooks.example.com" }, "url"],
  ["empty url", { url: "" }, "url"],
  ["ftp URL", { url: "ftp://hooks.example.com/" }, "url"],
  ["javascript URL", { url: "javascript:alert(1)" }, "url"],
  ["file URL", { url: "file:///etc/passwd" }, "url"],
  ["http URL", { url: "http://hooks.example.com/" }, "url"],
  ["URL with a user name", { url: "https://user@hooks.example.com/" }, "url"],
  ["URL with user name and password", { url: "https://user:secret@hooks.example.com/" }, "url"],
  ["URL with a password", { url: "https://:secret@hooks.example.com/" }, "url"],
  ["name without a domain", { url: "https://intranet/" }, "url"],
  ["private name", { url: "https://printer.local/" }, "url"],
  ["private address", { url: "https://10.0.0.1/" }, "url"],
  ["private address as one number", { url: "https://3232235521/" }, "url"],
  ["metadata address", { url: "https://169.254.169.254/latest/meta-data/" }, "url"],
  ["metadata address, mapped", { url: "https://[::ffff:169.254.169.254]/" }, "url"],
  ["Azure's metadata address", { url: "https://168.63.129.16/" }, "url"],
  ["IPv6 address", { url: "https://[2606:4700::1111]/" }, "url"],
  ["port of a database", { url: "https://hooks.example.com:5432/" }, "url"],
  ["low port", { url: "https://hooks.example.com:22/" }, "url"],
  ["URL of more than 2048 characters", { url: `https://hooks.example.com/${"x".repeat(2_048)}` }, "url"],
  ["unknown event type", { url, eventTypes: ["purchase.imagined"] }, "eventTypes[0]"],
  ["event type *", { url, eventTypes: ["*"] }, "eventTypes[0]"],
  ["repeated event type", { url, eventTypes: ["review.created", "review.created"] }, "eventTypes"],
  ["no event types", { url, eventTypes: [] }, "eventTypes"],
  ["event types as text", { url, eventTypes: "review.created" }, "eventTypes"],
  ["too long description", { url, description: "x".repeat(201) }, "description"],
  ["unknown signatureContent", { url, signatureContent: "sha1" }, "signatureContent"],
  ["signaturePrefix as text", { url, signaturePrefix: "yes" }, "signaturePrefix"],
  ["enabled as a number", { url, enabled: 1 }, "enabled"],
  ["secret of the owner", { url, secret: "whsec_mine" }, "secret"],
  ["unknown field", { url, events: [] }, "events"],
];
for (const [name, input, field] of refusals)
  test(`${name}: 400 at creation and change`, async () => {
    assertError(await owner.post("/v1/webhooks", input), 400, "INVALID_REQUEST", field);
    assert.equal((await owner.get("/v1/webhooks")).body.meta.total, 0);
    if (name === "missing url") return;
    const { id } = await hasEndpoint(owner);
    assertError(await owner.patch(`/v1/webhooks/${id}`, input), 400, "INVALID_REQUEST", field);
    assert.equal((await owner.get(`/v1/webhooks/${id}`)).body.data.url, `${receiver.url}/hook`);
  });

test("refused URL: the error does not quote its password", async () => {
  const { text } = await owner.post("/v1/webhooks", { url: "https://user:hunter2@hooks.example.com/" });
  assert.ok(!text.includes("hunter2"));
  assert.ok(!market.logs.some((line) => line.includes("hunter2")));
});

test("30 concurrent creations: 20 succeed, and the next one when one is deleted", async () => {
  const replies = await Promise.all(Array.from({ length: 30 }, () => owner.post("/v1/webhooks", { url })));
  const made = replies.filter(({ status }) => status === 201);
  assert.equal(made.length, 20);
  for (const reply of replies.filter(({ status }) => status !== 201))
    assertError(reply, 422, "VALIDATION_ERROR", "url");
  assert.equal((await owner.get("/v1/webhooks")).body.meta.total, 20);
  await hasEndpoint(await market.createUser());
  await owner.delete(`/v1/webhooks/${made[3]!.body.data.id}`);
  await hasEndpoint(owner);
  assertError(await owner.post("/v1/webhooks", { url }), 422, "VALIDATION_ERROR", "url");
});

test("unknown id or another user's endpoint, delivery and recovery: 404", async () => {
  const endpoint = await hasEndpoint(owner);
  const { id: deliveryId } = (await owner.post(`/v1/webhooks/${endpoint.id}/test`)).body.data;
  const since = market.clock.now.toISOString();
  market.clock.forward(1);
  const recovery = (await owner.post(`/v1/webhooks/${endpoint.id}/recover`, { since })).body.data;
  const stranger = await market.createUser();
  const theirs = await hasEndpoint(stranger);
  const mayBe = (id: string) => [
    ...[id, toId("whk", newUuid(new Date())), toId("usr", newUuid(new Date()))],
    ...[
      "nonsense",
      "whk_",
      "0",
      "%00",
      "%2e%2e",
      "x".repeat(100),
      "' or 1=1 --",
      endpoint.id.toUpperCase(),
    ].map(encodeURI),
  ];
  for (const id of mayBe(endpoint.id)) {
    const path = `/v1/webhooks/${id}`;
    const calls = [
      stranger.get(path),
      stranger.patch(path, { enabled: false }),
      stranger.delete(path),
      stranger.post(`${path}/test`),
      stranger.post(`${path}/rotate-secret`, {}),
      stranger.post(`${path}/recover`, { since }),
      stranger.get(`${path}/deliveries`),
      stranger.get(`${path}/stats`),
      stranger.get(`${path}/recoveries/${recovery.id}`),
    ];
    for (const reply of await Promise.all(calls)) assertError(reply, 404, "WEBHOOK_NOT_FOUND");
  }
  for (const id of mayBe(deliveryId)) {
    assertError(await stranger.get(`/v1/deliveries/${id}`), 404, "DELIVERY_NOT_FOUND");
    assertError(await stranger.post(`/v1/deliveries/${id}/retry`), 404, "DELIVERY_NOT_FOUND");
  }
  for (const id of mayBe(recovery.id))
    assertError(await stranger.get(`/v1/webhooks/${theirs.id}/recoveries/${id}`), 404, "RECOVERY_NOT_FOUND");
  assert.equal((await owner.get(`/v1/webhooks/${endpoint.id}`)).body.data.enabled, true);
});

test("key without webhooks:write: 403", async () => {
  const { id } = await hasEndpoint(owner);
  const deliveryId = (await owner.post(`/v1/webhooks/${id}/test`)).body.data.id;
  const others = [
    "products:read",
    "products:write",
    "purchases:read",
    "purchases:write",
    "analytics:read",
    "ai:execute",
  ] as const;
  const lacking = await market.createUser({ permissions: [...others] });
  const only = await market.createUser({ permissions: ["webhooks:write"] });
  const requests: [method: string, path: string, json?: object][] = [
    ["GET", "/webhooks"],
    ["POST", "/webhooks", { url }],
    ["GET", `/webhooks/${id}`],
    ["PATCH", `/webhooks/${id}`, { enabled: true }],
    ["DELETE", `/webhooks/${id}`],
    ["POST", `/webhooks/${id}/test`],
    ["POST", `/webhooks/${id}/rotate-secret`, {}],
    ["POST", `/webhooks/${id}/recover`, { since: "2026-06-15T00:00:00Z" }],
    ["GET", `/webhooks/${id}/recoveries/rcv_x`],
    ["GET", `/webhooks/${id}/deliveries`],
    ["GET", `/webhooks/${id}/stats`],
    ["GET", `/deliveries/${deliveryId}`],
    ["POST", `/deliveries/${deliveryId}/retry`],
  ];
  for (const [method, path, json] of requests) {
    const asking = json ? { json } : {};
    const refused = assertError(await lacking.request(method, `/v1${path}`, asking), 403, "UNAUTHORIZED");
    assert.equal(refused.required, "webhooks:write", path);
    assertError(await market.as(null).request(method, `/v1${path}`, asking), 401, "INVALID_API_KEY");
  }
  assert.equal((await only.post("/v1/webhooks", { url })).status, 201);
  assert.equal((await (await market.createSession(owner.userId)).get("/v1/webhooks")).status, 200);
});

test("If-Match with an old ETag: 412", async () => {
  const { id } = await hasEndpoint(owner);
  const path = `/v1/webhooks/${id}`;
  const seen = (await owner.get(path)).headers.get("etag")!;
  assert.equal((await owner.get(path, { "if-none-match": seen })).status, 304);
  const changed = await owner.patch(path, { description: "new" }, { "if-match": seen });
  assert.equal(changed.status, 200);
  assertError(
    await owner.patch(path, { description: "late" }, { "if-match": seen }),
    412,
    "PRECONDITION_FAILED",
  );
  assert.equal(changed.body.data.description, "new");
  const now = (await owner.get(path)).headers.get("etag")!;
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) => owner.patch(path, { description: `${n}` }, { "if-match": now })),
  );
  assert.equal(replies.filter(({ status }) => status === 200).length, 1);
  assert.equal((await owner.patch(path, {}, { "if-match": "*" })).status, 200);
});

test("new URL: pending deliveries go there, and Retry-After of the old one ends", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(503, { "retry-after": "3600" }).end();
  await happens(owner);
  await deliver();
  await owner.patch(`/v1/webhooks/${endpoint.id}`, {
    url: `${receiver.url}/moved`,
    signatureContent: "body",
    signaturePrefix: true,
  });
  receiver.answer = 200;
  await happens(owner, "second");
  await deliver();
  assert.equal(
    receiver.received.at(-1)!.path,
    "/moved",
    "new deliveries ignore the Retry-After of the old URL",
  );
  market.clock.forward(HOUR_MS);
  await deliver();
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ["/hook", "/moved", "/moved"],
  );
  assert.match(String(receiver.received[2]!.headers["x-service-signature"]), /^sha256=/);
  const { attempts } = await detailOf(owner, (await deliveriesOf(owner, endpoint))[1]);
  assert.deepEqual(
    attempts.map(({ request }: { request: { url: string } }) => new URL(request.url).pathname),
    ["/hook", "/moved"],
  );
});

test("event types removed: their pending deliveries are canceled, and new events are not delivered", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  await deliver();
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { eventTypes: ["payout.completed"] });
  receiver.answer = 200;
  await happens(owner, "later");
  market.clock.forward(24 * HOUR_MS);
  await deliver();
  const found = (await deliveriesOf(owner, endpoint)).map((one: { eventType: string; status: string }) => [
    one.eventType,
    one.status,
  ]);
  assert.deepEqual(found, [
    ["test", "succeeded"],
    ["review.created", "canceled"],
  ]);
});

test("disabled endpoint: pending and new deliveries are skipped; enabled, it gets new events", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner, "waits");
  await deliver();
  const off = await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: false });
  assert.deepEqual([off.body.data.enabled, off.body.data.disabledReason], [false, "owner"]);
  await happens(owner, "meanwhile");
  market.clock.forward(MINUTE_MS);
  await deliver();
  receiver.answer = 200;
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  await happens(owner, "then");
  await deliver();
  const statuses = (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["succeeded", "skipped", "skipped"]);
  assert.equal(receiver.received.length, 2);
});

test("deleted endpoint: pending deliveries are canceled, and its log stays", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  await owner.delete(`/v1/webhooks/${endpoint.id}`);
  await happens(owner, "later");
  market.clock.forward(24 * HOUR_MS);
  await deliver();
  const { status, attempts, endedAt } = await detailOf(owner, delivery);
  assert.deepEqual([status, attempts.length, endedAt !== null], ["canceled", 1, true]);
  assert.equal(receiver.received.length, 1);
  const { rows } = await market.query("select from webhook_secrets");
  assert.equal(rows.length, 0);
});

test("production: every URL must be https", async (t) => {
  const production = await openMarket({
    config: { environment: "production", mail: "off", allowedTargets: "loopback, 10.0.0.0/8" },
  });
  t.after(() => production.close());
  const seller = await production.createUser();
  for (const address of [
    "http://127.0.0.1:8080/",
    "http://localhost/",
    "http://10.1.2.3/",
    "http://hooks.example.com/",
  ])
    assertError(await seller.post("/v1/webhooks", { url: address }), 400, "INVALID_REQUEST", "url");
  const { id } = (await seller.post("/v1/webhooks", { url: "https://10.1.2.3/hook" })).body.data;
  assertError(
    await seller.patch(`/v1/webhooks/${id}`, { url: "HTTP://10.1.2.3/hook" }),
    400,
    "INVALID_REQUEST",
    "url",
  );
});

test("GET /v1/webhooks/egress: public, lists the source addresses of deliveries", async (t) => {
  const anonymous = market.as(null);
  const none = await anonymous.get("/v1/webhooks/egress");
  assert.deepEqual([none.status, none.body.data], [200, { addresses: [] }]);
  assert.deepEqual((await market.as("stoa_test_wrong").get("/v1/webhooks/egress")).status, 200);
  assertError(await anonymous.get("/v1/webhooks/egress?x=1"), 400, "INVALID_REQUEST", "x");
  const egressAddresses = ["192.0.2.1", "192.0.2.2"];
  const other = await openMarket({ config: { egressAddresses } });
  t.after(() => other.close());
  const egress = await other.as(null).get("/v1/webhooks/egress");
  assert.deepEqual(egress.body.data, { addresses: egressAddresses });
});

test("text that PostgreSQL cannot store: is refused or cleaned, never a 500", async () => {
  for (const input of [
    { url, description: "a\u0000b" },
    { url: `${url}/\u0000` },
    { url, description: "\ud800" },
    { url: "https://hooks.example.com/\ud800" },
  ]) {
    const { status, text } = await owner.post("/v1/webhooks", input);
    assert.ok([201, 400].includes(status), text);
  }
  const { id } = await hasEndpoint(owner);
  for (const path of [
    `webhooks/${id}/deliveries?eventId=%00`,
    `webhooks/${id}/recoveries/%00`,
    "deliveries/%00",
  ])
    assert.ok((await owner.get(`/v1/${path}`)).status < 500, path);
});

test("deleted endpoint: its row is deleted after the last delivery in its log", async () => {
  const { ctx } = market.service;
  const { id } = await hasEndpoint(owner);
  const stored = await hasEndpoint(owner);
  await happens(owner);
  await deliver();
  await owner.delete(`/v1/webhooks/${id}`);
  const isThere = async () =>
    (await market.query("select from webhook_endpoints where id = $1", [toUuid("whk", id)])).rows.length ===
    1;
  market.clock.forward(30 * 24 * HOUR_MS);
  await deleteOldEvents(ctx);
  await purgeDeletedEndpoints(ctx);
  assert.ok(await isThere(), "kept on the last day");
  market.clock.forward(1);
  await purgeDeletedEndpoints(ctx);
  assert.ok(await isThere(), "kept while it has a log");
  await deleteOldEvents(ctx);
  await purgeDeletedEndpoints(ctx);
  assert.ok(!(await isThere()));
  assert.equal((await owner.get(`/v1/webhooks/${stored.id}`)).status, 200);
});

test("URL: is stored and shown in its normalized form", async () => {
  const written: [typed: string, stored: string][] = [
    [" https://hooks.example.com/a b ", "https://hooks.example.com/a%20b"],
    ["HTTPS://Hooks.Example.COM:443", "https://hooks.example.com/"],
    ["https://hooks.example.com./x/../y", "https://hooks.example.com/y"],
    ["https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"],
  ];
  for (const [typed, stored] of written) {
    const made = await owner.post("/v1/webhooks", { url: typed });
    assert.equal(made.body.data?.url, stored, made.text);
    const path = `/v1/webhooks/${made.body.data.id}`;
    await owner.patch(path, { url: "https://hooks.example.com/other" });
    assert.equal((await owner.patch(path, { url: typed })).body.data.url, stored);
    await owner.delete(path);
  }
});

test("URL with a control character: 400 that names it", async () => {
  for (const [character, name] of [
    ["\n", "U+000A"],
    ["\r", "U+000D"],
    ["\t", "U+0009"],
    ["\u001b", "U+001B"],
    ["\u007f", "U+007F"],
  ] as const)
    for (const bad of [`${url}${character}`, `${url}${character}x`, `${character}${url}`]) {
      const reply = await owner.post("/v1/webhooks", { url: bad });
      assertError(reply, 400, "INVALID_REQUEST", "url");
      assert.equal(reply.body.error.details.reason, `contains the control character ${name}`);
    }
});

test("URL that is too long when normalized: 400", async () => {
  const reply = await owner.post("/v1/webhooks", { url: `${url}/${"ü".repeat(1_000)}` });
  assertError(reply, 400, "INVALID_REQUEST", "url");
});
