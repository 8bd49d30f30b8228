import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CONFIDENCE, compareRounds, judge, MIN_ROUNDS, rankOfInterval } from "./ratio.ts";

const figure = fc.double({ min: 1e-3, max: 1e6, noNaN: true });
const rounds = fc
  .integer({ min: MIN_ROUNDS, max: 40 })
  .chain((count) =>
    fc.tuple(
      fc.array(figure, { minLength: count, maxLength: count }),
      fc.array(figure, { minLength: count, maxLength: count }),
    ),
  );
const isClose = (one: number, other: number) => Math.abs(one / other - 1) < 1e-9;

test("compareRounds: exchanged sides give the reciprocal of the ratio and of its interval", () => {
  fc.assert(
    fc.property(rounds, ([first, second]) => {
      const ratio = compareRounds(first, second)!;
      const exchanged = compareRounds(second, first)!;
      assert.ok(isClose(ratio.median, 1 / exchanged.median));
      assert.ok(isClose(ratio.low, 1 / exchanged.high));
      assert.ok(isClose(ratio.high, 1 / exchanged.low));
      assert.ok(ratio.low <= ratio.median && ratio.median <= ratio.high);
    }),
  );
});

test("compareRounds: a side that is a constant factor of the other has that ratio in every round", () => {
  fc.assert(
    fc.property(rounds, fc.double({ min: 0.1, max: 10, noNaN: true }), ([first], factor) => {
      const second = first.map((value) => value * factor);
      const { low, median, high } = compareRounds(first, second)!;
      for (const value of [low, median, high]) assert.ok(isClose(value, factor));
    }),
  );
});

test("compareRounds: noise that both sides of a round share does not change the ratio", () => {
  fc.assert(
    fc.property(rounds, fc.array(figure, { minLength: 40, maxLength: 40 }), ([first, second], noise) => {
      const noisy = (side: number[]) => side.map((value, round) => value * noise[round]!);
      const [quiet, loud] = [compareRounds(first, second)!, compareRounds(noisy(first), noisy(second))!];
      assert.ok(isClose(quiet.median, loud.median));
    }),
  );
});

test("rankOfInterval: the narrowest pair of order statistics that covers the median with the confidence", () => {
  const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k);
  const coverage = (count: number, rank: number) =>
    1 -
    (2 * Array.from({ length: rank + 1 }, (_, k) => choose(count, k)).reduce((a, b) => a + b, 0)) /
      2 ** count;
  for (let count = MIN_ROUNDS; count <= 50; count++) {
    const rank = rankOfInterval(count);
    assert.ok(rank >= 0 && coverage(count, rank) >= CONFIDENCE, `${count} rounds`);
    assert.ok(coverage(count, rank + 1) < CONFIDENCE, `${count} rounds: ${rank} is not the narrowest`);
  }
  assert.equal(rankOfInterval(MIN_ROUNDS - 1), -1);
  assert.equal(rankOfInterval(8), 1);
});

test("compareRounds: a figure of 0 has no ratio, and too few rounds are an error", () => {
  assert.equal(compareRounds([1, 1, 0, 1, 1], [1, 1, 1, 1, 1]), null);
  assert.equal(compareRounds([1, 1, 1, 1, 1], [1, 1, 1, 1, 0]), null);
  assert.throws(() => compareRounds([1, 1, 1, 1], [1, 1, 1, 1]), /rounds/);
  assert.throws(() => compareRounds([1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]), /rounds/);
});

test("judge: only an interval without 1 is a change, in the direction of the figure", () => {
  assert.equal(judge({ median: 1.1, low: 0.99, high: 1.2 }, true), "");
  assert.equal(judge({ median: 1.1, low: 1.01, high: 1.2 }, true), "better");
  assert.equal(judge({ median: 1.1, low: 1.01, high: 1.2 }, false), "worse");
  assert.equal(judge({ median: 0.9, low: 0.8, high: 0.99 }, false), "better");
  assert.equal(judge({ median: 0.9, low: 0.8, high: 0.99 }, true), "worse");
});
