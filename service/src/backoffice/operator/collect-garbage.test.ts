import assert from "node:assert/strict";
import { test } from "node:test";
import { collectGarbageWhenIdle } from "./collect-garbage.ts";

test("busy start: the garbage is collected once, after the first two idle seconds", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let collections = 0;
  const utilizations = [0.9, 0.2, 0.01, 0.01];
  collectGarbageWhenIdle(
    () => collections++,
    () => utilizations.shift() ?? 0,
  );
  t.mock.timers.tick(4_000);
  assert.equal(collections, 0);
  t.mock.timers.tick(2_000);
  assert.equal(collections, 1);
  t.mock.timers.tick(20_000);
  assert.equal(collections, 1);
});

test("process that is busy for two minutes: its garbage stays", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let utilization = 0.9;
  collectGarbageWhenIdle(
    () => assert.fail("collected"),
    () => utilization,
  );
  t.mock.timers.tick(120_000);
  utilization = 0;
  t.mock.timers.tick(20_000);
});
