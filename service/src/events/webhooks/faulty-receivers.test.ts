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
  ["hangs up", (response) => void response.destroy(), "connection"],
  ["speaks no HTTP", (response) => void response.socket!.end("SSH-2.0-OpenSSH\r\n\r\n"), "invalid_response"],
  ["sends elsewhere", (response) => response.writeHead(302, { location: "/hook" }).end(), "status"],
];
for (const [name, answer, code] of misbehaviours)
  test(`a receiver that ${name} is tried again later, and the log says why`, async () => {
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

test("of a gigabyte 16 KiB are kept, and the rest is not read", async () => {
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
  assert.ok(sent < 64 * 1024 ** 2, `${sent} bytes were taken`);
});

test("of a bomb the bytes that came are kept, and nothing is unpacked", async () => {
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

test("an answer that is no text is kept as what a database can hold of it", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(200).end(Buffer.from([0x61, 0, 0xff, 0, 0x62]));
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.equal(delivery.status, "succeeded");
  assert.equal((await detailOf(owner, delivery)).attempts[0].response.body, "a\ufffdb");
});
