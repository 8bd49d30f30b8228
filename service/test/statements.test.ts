import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createDraft } from "./factories.ts";
import { type Market, openMarket } from "./market.ts";
import { statementsOf, statementsOfProcess } from "./statements.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

async function* inParts(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text.slice(0, 5));
  // The server takes turns of this event loop.
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  yield Buffer.from(text.slice(5));
}

test("statements of a request beside other work of the process: only those of the request count", async () => {
  const author = await market.createUser();
  const id = await createDraft(author);
  const { pool } = market.service.ctx;
  let titles = 0;
  /** In two parts, so that the handler runs in a later turn than the request event. */
  const change = async () => {
    const body = ReadableStream.from(inParts(JSON.stringify({ title: `Title ${++titles}` })));
    const headers = { "content-type": "application/json" };
    const reply = await author.request("PATCH", `/v1/products/${id}`, { body, headers, duplex: "half" });
    assert.equal(reply.status, 200, reply.text);
  };
  await change();
  const alone = await statementsOf(change);
  assert.ok(alone.some((text) => /\bupdate\b/i.test(text)));
  const OTHER = "select 'other work'";
  let isOver = false;
  const workBeside = async () => {
    while (!isOver) await pool.query(OTHER);
  };
  const beside = workBeside();
  try {
    assert.deepEqual(await statementsOf(change), alone);
    assert.ok((await statementsOfProcess(change)).includes(OTHER));
  } finally {
    isOver = true;
    await beside;
  }
});
