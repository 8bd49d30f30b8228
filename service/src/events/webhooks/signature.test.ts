import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createSignatureHeaders,
  generateWebhookSecret,
  type Message,
  type SignatureFormat,
} from "./signature.ts";

/** The test vector of section 5 of the contract. */
const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const message: Message = {
  id: "evt_01J0000000000000000000TEST",
  attempt: 1,
  timestamp: 1_700_000_000,
  body: '{"id":"evt_01J0000000000000000000TEST","type":"test","created":"2023-11-14T22:13:20.000Z","data":{"message":"hello"}}',
};
const OF_TIMESTAMP_AND_BODY = "10377d8ccbed8e3c491c07db66d17918aa6a576104db89947cca5b5a51d356ad";
const OF_BODY = "c2b14dc56e5943eaa501ab876d861f802f01583c60bc76837a669375d33610a7";

const forms: [form: SignatureFormat, signature: string][] = [
  [{ content: "timestamp_body", prefix: false }, OF_TIMESTAMP_AND_BODY],
  [{ content: "timestamp_body", prefix: true }, `sha256=${OF_TIMESTAMP_AND_BODY}`],
  [{ content: "body", prefix: false }, OF_BODY],
  [{ content: "body", prefix: true }, `sha256=${OF_BODY}`],
];
for (const [form, signature] of forms) {
  test(`${form.content} ${form.prefix ? "with" : "without"} prefix: equals the contract's test vector`, () => {
    assert.deepEqual(createSignatureHeaders("X-Service-", message, [secret], form), {
      "X-Service-Event-ID": message.id,
      "X-Service-Timestamp": "1700000000",
      "X-Service-Attempt": "1",
      "X-Service-Signature": signature,
      "webhook-id": message.id,
      "webhook-timestamp": "1700000000",
      "webhook-signature": "v1,z2zLu+r7j5ALObxy8Vel+ENEAK0QGxXj05Pj9sFfOyc=",
    });
  });
}

test("two secrets: the newest signs first, the older also, and the standard header has both", () => {
  const [newer, older] = [generateWebhookSecret(), secret];
  const form: SignatureFormat = { content: "timestamp_body", prefix: false };
  const both = createSignatureHeaders("Acme-", message, [newer, older], form);
  const alone = createSignatureHeaders("Acme-", message, [newer], form);
  assert.equal(both["Acme-Signature"], alone["Acme-Signature"]);
  assert.equal(both["Acme-Signature-Previous"], OF_TIMESTAMP_AND_BODY);
  assert.equal(
    both["webhook-signature"],
    `${alone["webhook-signature"]} v1,z2zLu+r7j5ALObxy8Vel+ENEAK0QGxXj05Pj9sFfOyc=`,
  );
});

test("secret: is random, whsec_ and 32 bytes in base64", () => {
  const secrets = Array.from({ length: 100 }, generateWebhookSecret);
  assert.equal(new Set(secrets).size, 100);
  for (const one of secrets) {
    assert.match(one, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(Buffer.from(one.slice(6), "base64").length, 32);
  }
});
