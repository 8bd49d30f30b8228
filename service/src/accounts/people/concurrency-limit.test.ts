import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ApiError } from "../../core/errors.ts";
import { limitConcurrency } from "./concurrency-limit.ts";

/** Tasks that end when the test resolves them. */
function createTasks(count: number) {
  const started: number[] = [];
  const all = Array.from({ length: count }, (_, at) => {
    const done = Promise.withResolvers<number>();
    const run = () => {
      started.push(at);
      return done.promise;
    };
    return { ...done, run };
  });
  return { all, started };
}

test("ConcurrencyLimit: runs up to the limit, queues up to the next, then throws 503", async () => {
  const runLimited = limitConcurrency({ atOnce: 2, waiting: 3 });
  const { all, started } = createTasks(7);
  const answers = all.map(({ run }) => runLimited(run));
  const [refused, ...others] = await Promise.allSettled(answers.slice(5));
  for (const { status, reason } of [refused, ...others] as PromiseRejectedResult[]) {
    assert.equal(status, "rejected");
    assert.ok(reason instanceof ApiError && reason.code === "SERVICE_UNAVAILABLE");
    assert.equal(reason.retryAfterSeconds, 1);
  }
  assert.deepEqual(started, [0, 1]);
  all[1]!.resolve(1);
  await nextTurn();
  assert.deepEqual(started, [0, 1, 2], "first come, first served");
  for (const at of [0, 2, 3, 4]) all[at]!.resolve(at);
  assert.deepEqual(await Promise.all(answers.slice(0, 5)), [0, 1, 2, 3, 4]);
});

test("ConcurrencyLimit, work that fails: the next in the queue starts", async () => {
  const runLimited = limitConcurrency({ atOnce: 1, waiting: 1 });
  const failing = runLimited(() => Promise.reject(new Error("broken")));
  const next = runLimited(async () => "done");
  await assert.rejects(failing, /broken/);
  assert.equal(await next, "done");
  assert.equal(await runLimited(async () => "again"), "again");
});
