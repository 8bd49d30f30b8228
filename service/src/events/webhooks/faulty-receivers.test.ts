import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Client } from "../../../test/market.ts";
import type { WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { openWebhookMarket } from "../../../test/webhooks.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

const misbehaviours: [name: string, answer: WebhookReceiver["answer"], code: string][] = [
  ["closes the connection", (response) => void response.destroy(), "connection"],
  [
    "does not use HTTP",
    (response) => void response.socket!.end("SSH-2.0-OpenSSH\r\n\r\n"),
    "invalid_response",
  ],
  ["redirects", (response) => response.writeHead(302, { location: "/hook" }).end(), "status"],
];
for (const [name, answer, code] of misbehaviours)
  test(`receiver that ${name}: is retried, and the log has the reason`, async () => {
    const endpoint = await hasEndpoint(owner);
    receiver.answer = answer;
    await happens(owner);
    await deliver();
    const [delivery] = await deliveriesOf(owner, endpoint);
    assert.equal(delivery.status, "retrying");
    const { attempts } = await detailOf(owner, delivery);
    assert.equal(attempts[0].error.code, code);
    assert.equal(receiver.received.length, 1);
  });

test("response of a gigabyte: 16 KiB are stored, and the rest is not read", async () => {
  const endpoint = await hasEndpoint(owner);
  let sent = 0;
  receiver.answer = (response) => {
    const chunk = Buffer.alloc(64 * 1024, "x");
    const more = () => {
      while (sent < 1024 ** 3 && !response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) return;
      }
      response.end();
    };
    response.writeHead(200).on("drain", more);
    more();
  };
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.equal(delivery.status, "succeeded");
  assert.equal((await detailOf(owner, delivery)).attempts[0].response.body.length, 16 * 1024);
  assert.ok(sent < 64 * 1024 ** 2, `${sent} bytes were read`);
});

test("compressed bomb: the received bytes are stored and not decompressed", async () => {
  const endpoint = await hasEndpoint(owner);
  const bomb = gzipSync(Buffer.alloc(20 * 1024 ** 2));
  receiver.answer = (response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.equal(delivery.status, "succeeded");
  const { body } = (await detailOf(owner, delivery)).attempts[0].response;
  assert.ok(body.length <= 16 * 1024 && !/^\s*$/.test(body), `${body.length} characters`);
});

test("binary response: is stored as far as PostgreSQL can store it", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(200).end(Buffer.from([0x61, 0, 0xff, 0, 0x62]));
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.equal(delivery.status, "succeeded");
  assert.equal((await detailOf(owner, delivery)).attempts[0].response.body, "a\ufffdb");
});
