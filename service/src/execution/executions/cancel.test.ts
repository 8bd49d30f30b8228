import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createDraft } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { executionOf, readWholeStream, streamedRunOf, streamRun } from "../../../test/run-streams.ts";
import { createProviderKey, newestRun, providersAt, run } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import type { Service } from "../../app.ts";
import { RUN_LEASE_MS } from "../prompt-runs/run-record.ts";

let provider: ProviderServer;
let market: Market;
let elsewhere: Service;
let owner: Client;
let productId: string;
let apiKeyId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  elsewhere = await market.startNode();
  owner = await market.createUser();
  productId = await createDraft(owner, { models: { openai: "gpt-4o" } });
  apiKeyId = await createProviderKey(owner);
});
after(async () => {
  await market.close();
  await provider.close();
});

const read = async (id: string) => (await owner.get(`/v1/ai/executions/${id}`)).body.data;
const cancel = (id: string, origin = market.origin) => owner.post(`${origin}/v1/ai/executions/${id}/cancel`);
const ended = (id: string) =>
  becomes(
    () => read(id),
    ({ completedAt }) => completedAt !== null,
  );

/** Starts a stream that sends one piece and then waits. */
async function stuckStream() {
  provider.next({ stream: { pieces: ["One ", "two"], breaks: "stall", after: 1 } });
  const listener = await streamRun(market.origin, owner, { productId, apiKeyId });
  await listener.waitForEvents(2);
  return listener;
}

for (const where of ["the process that runs it", "another process"]) {
  const originOf = () => (where === "another process" ? elsewhere.origin : market.origin);

  suite(`POST /v1/ai/executions/:id/cancel at ${where}`, () => {
    test("stream: ends with an error event, and the output so far is stored", async () => {
      const listener = await stuckStream();
      const reply = await cancel(executionOf(listener), originOf());
      assert.equal(reply.status, 200, reply.text);
      assert.notEqual(reply.body.data.cancelRequestedAt, null);
      const { text, end } = await readWholeStream(listener);
      assert.deepEqual([text, end.code, end.details.current], ["One ", "INVALID_STATE", "canceled"]);
      const { status, error, output, usage } = await ended(executionOf(listener));
      assert.deepEqual([status, error.code, output, usage.estimated], ["canceled", "canceled", "One ", true]);
    });

    test("sync run: its request ends with the cancellation", async () => {
      const arrival = provider.nextRequest();
      provider.next("hang");
      const waiting = run(owner, { productId, apiKeyId });
      await arrival;
      const { id } = await newestRun(owner);
      assert.equal((await cancel(id, originOf())).status, 200);
      assert.equal(assertError(await waiting, 409, "INVALID_STATE").executionId, id);
      assert.equal((await ended(id)).status, "canceled");
    });
  });
}

test("repeated cancellation: succeeds and changes nothing", async () => {
  const listener = await stuckStream();
  const id = executionOf(listener);
  const replies = await Promise.all(Array.from({ length: runs(20) }, () => cancel(id)));
  assert.deepEqual(
    replies.map(({ status, body }) => [status, body.data.status]),
    replies.map(() => [200, "canceled"]),
  );
  await readWholeStream(listener);
  assert.equal((await cancel(id)).body.data.status, "canceled");
});

test("ended run: 409; another user's run: 404", async () => {
  const { executionId } = (await run(owner, { productId })).body.data;
  const details = assertError(await cancel(executionId), 409, "INVALID_STATE");
  assert.deepEqual(details, { current: "completed", allowed: ["queued", "running", "waiting"] });
  const stranger = await market.createUser();
  assertError(await stranger.post(`/v1/ai/executions/${executionId}/cancel`), 404, "EXECUTION_NOT_FOUND");
  assertError(await cancel("exec_nope"), 404, "EXECUTION_NOT_FOUND");
});

test("run of a dead process: is canceled at once", async () => {
  const { executionId } = (await run(owner, { productId })).body.data;
  const { rows } = await market.query(
    `update executions set status = 'running', completed_at = null, lease_until = $1
      where id = (select id from executions order by id desc limit 1) returning id`,
    [new Date(market.clock.now.getTime() - 1)],
  );
  market.clock.forward(RUN_LEASE_MS);
  assert.equal(rows.length, 1);
  assert.equal((await cancel(executionId)).body.data.status, "canceled");
});

test("cancellation without a notification: is polled", async () => {
  const listener = await stuckStream();
  const { ctx } = market.service;
  const { areCurrent } = ctx.notifications;
  ctx.notifications.areCurrent = () => false;
  // Writes what another process writes, without the notification.
  await market.query("update executions set cancel_requested_at = now() where status = 'running'");
  const { end } = await readWholeStream(listener);
  ctx.notifications.areCurrent = areCurrent;
  assert.equal(end.details.current, "canceled");
});

test("running execution: cannot be deleted; a canceled one can", async () => {
  const listener = await stuckStream();
  const id = executionOf(listener);
  const details = assertError(await owner.delete(`/v1/ai/executions/${id}`), 409, "INVALID_STATE");
  assert.equal(details.current, "running");
  await cancel(id);
  assert.equal((await owner.delete(`/v1/ai/executions/${id}`)).status, 200);
  assert.equal(streamedRunOf(listener).text, "One ");
  assertError(await owner.get(`/v1/ai/executions/${id}/events`), 404, "EXECUTION_NOT_FOUND");
});
