import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { webhookHelpers } from "../../../test/webhooks.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";

/** No pause of the machine ends a call. */
const postDeadlines = { connectMs: HOUR_MS, totalMs: HOUR_MS };

/** Allows one loopback address: private targets must be refused from POST /webhooks to the socket. */
let market: Market;
/** A service on loopback that must not be reached. */
let inside: WebhookReceiver;
let owner: Client;
let addresses: string[][] = [];
let lookups = 0;
const { deliver, deliveriesOf, detailOf, forgetAll, happens } = webhookHelpers(
  () => market,
  () => inside,
);
before(async () => {
  inside = await startWebhookReceiver();
  market = await openMarket({
    config: { allowedTargets: "127.0.0.2" },
    postDeadlines,
    resolve: async () => {
      lookups++;
      return addresses.length > 1 ? addresses.shift()! : addresses[0]!;
    },
  });
});
beforeEach(async () => {
  await forgetAll();
  owner = await market.createUser();
  inside.received.length = 0;
  inside.answer = 200;
  addresses = [["127.0.0.1"]];
  lookups = 0;
});
after(async () => {
  await market.close();
  await inside.close();
});

const portOf = ({ url }: WebhookReceiver) => new URL(url).port;
const LOOPBACK = [
  ...[
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0",
    "0.0.0.0",
  ],
  ...[
    "localhost",
    "localhost.",
    "LOCALHOST",
    "127.0.0.1.",
    "0x7f000001",
    "017700000001",
    "[::]",
    "[::ffff:7f00:1]",
    "①②⑦.⓪.⓪.①",
  ],
];
const METADATA = [
  "169.254.169.254",
  "[fd00:ec2::254]",
  "[::ffff:a9fe:a9fe]",
  "100.100.100.200",
  "168.63.129.16",
  "2852039166",
];

/** An endpoint whose URL was allowed when it was created. */
async function insertEndpointAt(url: string) {
  const { body } = await owner.post("/v1/webhooks", { url: "https://hooks.example.com/" });
  await market.query("update webhook_endpoints set url = $2 where id = $1", [
    toUuid("whk", body.data.id),
    url,
  ]);
  return body.data;
}

/** The only attempt of an event, as the API shows it. */
async function attemptAt(endpoint: { id: string }) {
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.equal(delivery.status, "retrying");
  return (await detailOf(owner, delivery)).attempts[0];
}

for (const scheme of ["http", "https"])
  test(`POST /v1/webhooks with ${scheme}: every form of a loopback or metadata address is refused`, async () => {
    for (const host of [...LOOPBACK, ...METADATA]) {
      const url = `${scheme}://${host}:${portOf(inside)}/`;
      const refused = await owner.post("/v1/webhooks", { url });
      assertError(refused, 400, "INVALID_REQUEST", "url");
    }
    assert.equal((await owner.get("/v1/webhooks")).body.meta.total, 0);
  });

test("stored loopback or metadata address: is not connected to", async () => {
  const endpoints = [];
  for (const host of [...LOOPBACK, ...METADATA]) {
    if (endpoints.length % 20 === 19) owner = await market.createUser();
    endpoints.push({
      endpoint: await insertEndpointAt(`http://${host}:${portOf(inside)}/hook`),
      owner,
      host,
    });
  }
  for (const who of new Set(endpoints.map((one) => one.owner))) await happens(who);
  await deliver();
  for (const { endpoint, owner: who, host } of endpoints) {
    const [delivery] = await deliveriesOf(who, endpoint);
    const { error, response } = (await detailOf(who, delivery)).attempts[0];
    assert.deepEqual([error?.code, response], ["blocked_address", null], host);
  }
  assert.deepEqual(inside.received, []);
});

test("name with a private address: is refused when connecting, and its address is not shown", async () => {
  const { id } = (await owner.post("/v1/webhooks", { url: "https://hooks.example.com:8443/" })).body.data;
  for (const address of [
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "100.64.0.1",
    "::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
  ]) {
    addresses = [[address]];
    await happens(owner);
    await deliver();
    const [delivery] = await deliveriesOf(owner, { id });
    const { error } = (await detailOf(owner, delivery)).attempts[0];
    assert.equal(error.code, "blocked_address", address);
    assert.ok(!JSON.stringify(error).includes(address));
    assert.ok(!market.logs.some((line) => line.includes(`"${address}"`)));
    await market.query("delete from webhook_deliveries");
  }
  addresses = [["127.0.0.2", "127.0.0.1"]];
  assert.equal(
    (await attemptAt({ id })).error.code,
    "blocked_address",
    "one private address blocks the call",
  );
});

/** A TCP server that counts connections. */
async function listen(host: string, port = 0) {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections++;
    socket.on("error", () => {}).destroy();
  });
  await once(server.listen(port, host), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => server.close(),
  };
}

test("name with changing addresses: is resolved once for each connection and checked again", async (t) => {
  const allowed = await listen("127.0.0.2");
  const secret = await listen("127.0.0.1", allowed.port);
  t.after(() => [allowed.close(), secret.close()]);
  const url = `https://rebind.example.com:${allowed.port}/`;
  const { id } = (await owner.post("/v1/webhooks", { url })).body.data;
  addresses = [["127.0.0.2"], ["127.0.0.1"]];
  assert.notEqual((await attemptAt({ id })).error.code, "blocked_address");
  assert.deepEqual([lookups, allowed.connections(), secret.connections()], [1, 1, 0]);
  market.clock.forward(60_000);
  await deliver();
  const [delivery] = await deliveriesOf(owner, { id });
  assert.equal((await detailOf(owner, delivery)).attempts[1].error.code, "blocked_address");
  assert.deepEqual([lookups, allowed.connections(), secret.connections()], [2, 1, 0]);
});

test("redirect to a private address: is a failed response and not followed", async (t) => {
  const outside = await openMarket({
    config: { allowedTargets: `127.0.0.1:${portOf(inside)}` },
    postDeadlines,
  });
  t.after(() => outside.close());
  const secret = await startWebhookReceiver();
  t.after(() => secret.close());
  const seller = await outside.createUser();
  const hooks = webhookHelpers(
    () => outside,
    () => inside,
  );
  assertError(await seller.post("/v1/webhooks", { url: secret.url }), 400, "INVALID_REQUEST", "url");
  const endpoint = await hooks.hasEndpoint(seller);
  for (const status of [301, 302, 303, 307, 308]) {
    inside.answer = (response) => response.writeHead(status, { location: `${secret.url}/admin` }).end();
    await hooks.happens(seller, `${status}`);
    await hooks.deliver();
    const [delivery] = await hooks.deliveriesOf(seller, endpoint);
    const { error, response } = (await hooks.detailOf(seller, delivery)).attempts[0];
    assert.deepEqual([error.code, response.status], ["status", status]);
    assert.match(error.message, /redirects are not followed/);
  }
  assert.deepEqual(secret.received, []);
  assert.equal(inside.received.length, 5);
});

test("own service: only its inbox may be called, and no other path on that connection", async (t) => {
  const open = await openMarket({ postDeadlines });
  t.after(() => open.close());
  const seller = await open.createUser();
  const hooks = webhookHelpers(
    () => open,
    () => inside,
  );
  const own = open.origin;
  for (const path of ["/", "/v1/webhooks", "/dev/hooksx", "/dev/mail", "/dev/hooks/../../v1/account"])
    assertError(await seller.post("/v1/webhooks", { url: own + path }), 400, "INVALID_REQUEST", "url");
  const endpoint = await hooks.hasEndpoint(seller, { url: `${own}/dev/hooks/x` });
  await hooks.happens(seller);
  await hooks.deliver();
  const [reached] = await hooks.deliveriesOf(seller, endpoint);
  assert.ok((await hooks.detailOf(seller, reached)).attempts[0].response, "the inbox responds");
  await open.query("update webhook_endpoints set url = $1", [`${own}/healthz`]);
  await hooks.happens(seller, "again");
  await hooks.deliver();
  const [blocked] = await hooks.deliveriesOf(seller, endpoint);
  assert.equal((await hooks.detailOf(seller, blocked)).attempts[0].error.code, "blocked_address");
});

test("POST /webhooks: the service's own public host is refused, another port of it is not", async () => {
  const shop = await openMarket({ config: { publicUrl: "https://shop.example.com" } });
  try {
    const client = await shop.createUser();
    const make = (url: string) => client.post("/v1/webhooks", { url });
    assertError(await make("https://shop.example.com/v1/products"), 400, "INVALID_REQUEST", "url");
    assertError(await make("https://SHOP.example.com./hook"), 400, "INVALID_REQUEST", "url");
    assert.equal((await make("https://shop.example.com:8443/hook")).status, 201);
    assert.equal((await make("https://shop.example.com/dev/hooks/mine")).status, 201);
  } finally {
    await shop.close();
  }
});
