import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../core/errors.ts";
import { limitConcurrency } from "./concurrency-limit.ts";

/** Work that ends when it is told to. */
function pieces(count: number) {
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

const soon = () => new Promise((resolve) => setImmediate(resolve));

test("so many work at once, so many wait in line, and whoever comes then is sent away with 503", async () => {
  const inTurn = limitConcurrency({ atOnce: 2, waiting: 3 });
  const { all, started } = pieces(7);
  const answers = all.map(({ run }) => inTurn(run));
  const [sentAway, ...others] = await Promise.allSettled(answers.slice(5));
  for (const { status, reason } of [sentAway, ...others] as PromiseRejectedResult[]) {
    assert.equal(status, "rejected");
    assert.ok(reason instanceof ApiError && reason.code === "SERVICE_UNAVAILABLE");
    assert.equal(reason.retryAfterSeconds, 1);
  }
  assert.deepEqual(started, [0, 1]);
  all[1]!.resolve(1);
  await soon();
  assert.deepEqual(started, [0, 1, 2], "first come, first served");
  for (const at of [0, 2, 3, 4]) all[at]!.resolve(at);
  assert.deepEqual(await Promise.all(answers.slice(0, 5)), [0, 1, 2, 3, 4]);
});

test("work that fails gives its turn on", async () => {
  const inTurn = limitConcurrency({ atOnce: 1, waiting: 1 });
  const failing = inTurn(() => Promise.reject(new Error("broken")));
  const next = inTurn(async () => "done");
  await assert.rejects(failing, /broken/);
  assert.equal(await next, "done");
  assert.equal(await inTurn(async () => "again"), "again");
});
