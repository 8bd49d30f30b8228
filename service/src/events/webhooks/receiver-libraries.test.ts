import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { after, before, test } from "node:test";
import * as standard from "standardwebhooks";
import * as svix from "svix";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  type ReceivedRequest,
  startWebhookReceiver,
  type WebhookReceiver,
} from "../../../test/webhook-receiver.ts";
import { webhookHelpers } from "../../../test/webhooks.ts";

/** Receivers as integrators write them, with only the secret and the request. */
let market: Market;
let receiver: WebhookReceiver;
let owner: Client;
const { deliver, happens, hasEndpoint } = webhookHelpers(
  () => market,
  () => receiver,
);
before(async () => {
  market = await openMarket();
  // The libraries use the real clock.
  market.clock.now = new Date();
  receiver = await startWebhookReceiver();
  owner = await market.createUser();
});
after(async () => {
  await market.close();
  await receiver.close();
});

interface Form {
  signatureContent: "timestamp_body" | "body";
  signaturePrefix: boolean;
}
const forms: Form[] = [
  { signatureContent: "timestamp_body", signaturePrefix: false },
  { signatureContent: "timestamp_body", signaturePrefix: true },
  { signatureContent: "body", signaturePrefix: false },
  { signatureContent: "body", signaturePrefix: true },
];

/** Verifies as the specification describes. */
function isOurs(
  secret: string,
  { headers, body }: ReceivedRequest,
  form: Form,
  name = "x-service-signature",
): boolean {
  const signed = form.signatureContent === "body" ? body : `${headers["x-service-timestamp"]}.${body}`;
  const digest = createHmac("sha256", secret).update(signed).digest("hex");
  const expected = Buffer.from(form.signaturePrefix ? `sha256=${digest}` : digest);
  const actual = Buffer.from(String(headers[name]));
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

const libraries = {
  standardwebhooks: (secret: string) => new standard.Webhook(secret),
  svix: (secret: string) => new svix.Webhook(secret),
};

/** Delivers one event with characters of one to four bytes, and returns the received request. */
async function received(): Promise<ReceivedRequest> {
  receiver.received.length = 0;
  await happens(owner, 'Schön — “wirklich” \u2028 ✓ 🎉 \\ "quoted" </script>');
  await deliver();
  assert.equal(receiver.received.length, 1);
  return receiver.received[0]!;
}

const altered: [name: string, alter: (one: ReceivedRequest) => ReceivedRequest][] = [
  ["another body", (one) => ({ ...one, body: `${one.body} ` })],
  ["another id", (one) => ({ ...one, headers: { ...one.headers, "webhook-id": "evt_other" } })],
  [
    "another time",
    (one) => ({
      ...one,
      headers: { ...one.headers, "webhook-timestamp": String(Number(one.headers["webhook-timestamp"]) + 1) },
    }),
  ],
  [
    "an old time",
    (one) => ({
      ...one,
      headers: {
        ...one.headers,
        "webhook-timestamp": String(Number(one.headers["webhook-timestamp"]) - 301),
      },
    }),
  ],
];

for (const form of forms) {
  const name = `${form.signatureContent}${form.signaturePrefix ? " with sha256=" : ""}`;
  test(`${name}: every receiver verifies deliveries before, during and after a rotation`, async () => {
    const { id, secret } = await hasEndpoint(owner, form);
    const before = await received();
    const rotated = (await owner.post(`/v1/webhooks/${id}/rotate-secret`, { overlapHours: 1 })).body.data
      .secret;
    const within = await received();
    await owner.post(`/v1/webhooks/${id}/rotate-secret`, { overlapHours: 0 });
    const later = await received();

    for (const [library, open] of Object.entries(libraries)) {
      const mustVerify = (with_: string, one: ReceivedRequest) => {
        const headers = one.headers as Record<string, string>;
        return open(with_).verify(one.body, headers);
      };
      mustVerify(secret, before);
      mustVerify(secret, within);
      mustVerify(rotated, within);
      assert.throws(() => mustVerify(rotated, before), /signature/i, library);
      for (const old of [secret, rotated]) assert.throws(() => mustVerify(old, later), /signature/i, library);
      for (const [what, alter] of altered)
        assert.throws(() => mustVerify(secret, alter(before)), Error, `${library} ${what}`);
    }
    assert.ok(isOurs(secret, before, form));
    assert.equal(before.headers["x-service-signature-previous"], undefined);
    assert.ok(isOurs(rotated, within, form));
    assert.ok(isOurs(secret, within, form, "x-service-signature-previous"));
    assert.ok(!isOurs(rotated, later, form) && !isOurs(secret, later, form));
    for (const other of forms.filter((one) => one !== form)) assert.ok(!isOurs(secret, before, other));
    await owner.delete(`/v1/webhooks/${id}`);
  });
}

test("second attempt: has a new signature with the same id and body, and libraries accept it", async () => {
  const { id, secret } = await hasEndpoint(owner);
  receiver.answer = 500;
  const first = await received();
  market.clock.forward(60_000);
  await deliver();
  receiver.answer = 200;
  const second = receiver.received[1]!;
  assert.equal(second.body, first.body);
  assert.equal(second.headers["webhook-id"], first.headers["webhook-id"]);
  assert.notEqual(second.headers["webhook-signature"], first.headers["webhook-signature"]);
  for (const open of Object.values(libraries))
    open(secret).verify(second.body, second.headers as Record<string, string>);
  await owner.delete(`/v1/webhooks/${id}`);
});

/** The headers of a delivery in the API reference, and which of them are always present. */
async function documentedHeaders(of: Market) {
  const { parameters } = (await of.as(null).get("/v1/openapi.json")).body.webhooks["review.created"].post;
  return (parameters as { name: string; required: boolean }[]).map(({ name, required }) => ({
    name: name.toLowerCase(),
    required,
  }));
}

test("webhookHeaderPrefix: changes our own headers; the API reference lists all, and which occur only during a rotation", async (t) => {
  const other = await openMarket({ config: { webhookHeaderPrefix: "X-Acme-" } });
  t.after(() => other.close());
  const seller = await other.createUser();
  const hooks = webhookHelpers(
    () => other,
    () => receiver,
  );
  const { id } = await hooks.hasEndpoint(seller);
  const receiveNames = async () => {
    receiver.received.length = 0;
    await hooks.happens(seller);
    await hooks.deliver();
    return Object.keys(receiver.received[0]!.headers);
  };
  const names = await receiveNames();
  const own = ["event-id", "timestamp", "attempt", "signature"].map((name) => `x-acme-${name}`);
  for (const name of [...own, "webhook-id", "webhook-timestamp", "webhook-signature"])
    assert.ok(names.includes(name), name);
  assert.ok(!names.some((name) => name.startsWith("x-service-")));
  const documented = await documentedHeaders(other);
  const documentedNames = (which: (typeof documented)[number][]) => which.map(({ name }) => name).sort();
  const ours = (all: string[]) => all.filter((name) => /^x-acme|^webhook/.test(name)).sort();
  assert.deepEqual(ours(names), documentedNames(documented.filter(({ required }) => required)));
  await seller.post(`/v1/webhooks/${id}/rotate-secret`, {});
  assert.deepEqual(ours(await receiveNames()), documentedNames(documented));
});
