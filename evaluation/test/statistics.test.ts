import assert from "node:assert/strict";
import { test } from "node:test";
import { seeded } from "../../scripts/verdict-cases.ts";
import { isFullSize } from "../../service/test/full-size.ts";
import {
  type CaseRuns,
  differenceInterval,
  isWorseBeyondInterval,
  median,
  passPowerK,
  passRate,
  type Rate,
  wilsonInterval,
} from "../src/index.ts";

const round = ({ low, high }: { low: number; high: number }) => [low.toFixed(4), high.toFixed(4)];

test("wilsonInterval: equals published intervals and stays within 0 and 1", () => {
  // Newcombe (1998), Statistics in Medicine 17:857, table I, method 3.
  assert.deepEqual(round(wilsonInterval(81, 263)), ["0.2553", "0.3662"]);
  assert.deepEqual(round(wilsonInterval(15, 148)), ["0.0624", "0.1605"]);
  assert.deepEqual(round(wilsonInterval(0, 20)), ["0.0000", "0.1611"]);
  assert.deepEqual(round(wilsonInterval(1, 29)), ["0.0061", "0.1718"]);
  assert.deepEqual(wilsonInterval(5, 5).high, 1);
  assert.deepEqual(wilsonInterval(0, 0), { low: 0, high: 1 });
});

const rate = (passed: number, n: number): Rate => ({ rate: passed / n, ...wilsonInterval(passed, n), n });

test("differenceInterval: equals published intervals", () => {
  // Newcombe (1998), Statistics in Medicine 17:873, table II, method 10.
  assert.deepEqual(round(differenceInterval(rate(56, 70), rate(48, 80))), ["0.0524", "0.3339"]);
  assert.deepEqual(round(differenceInterval(rate(9, 10), rate(3, 10))), ["0.1705", "0.8090"]);
  assert.deepEqual(round(differenceInterval(rate(10, 10), rate(0, 10))), ["0.6075", "1.0000"]);
});

test("isWorseBeyondInterval: the interval of the difference decides", () => {
  assert.equal(isWorseBeyondInterval(rate(56, 70), rate(48, 80)), true);
  assert.equal(isWorseBeyondInterval(rate(48, 80), rate(56, 70)), false);
  assert.equal(isWorseBeyondInterval(rate(9, 10), rate(6, 10)), false);
  assert.equal(isWorseBeyondInterval(rate(10, 10), rate(10, 10)), false);
});

test("passPowerK: counts the ways to pick k passed runs, and leaves out cases with fewer runs", () => {
  const cases = [
    { passed: 3, runs: 3 },
    { passed: 2, runs: 3 },
    { passed: 4, runs: 5 },
    { passed: 1, runs: 1 },
  ];
  assert.equal(passPowerK(cases, 1)!.rate.toFixed(6), ((1 + 2 / 3 + 4 / 5 + 1) / 4).toFixed(6));
  assert.equal(passPowerK(cases, 3)!.rate.toFixed(6), ((1 + 0 + 4 / 10) / 3).toFixed(6));
  assert.equal(passPowerK(cases, 6), null);
  assert.equal(passPowerK([{ passed: 0, runs: 3 }], 3)!.rate, 0);
});

test("passRate: one case, equal cases and no runs", () => {
  assert.equal(passRate([{ passed: 0, runs: 0 }]), null);
  assert.equal(passRate([{ passed: 2, runs: 3 }])!.n, 1);
  assert.equal(passRate(Array<CaseRuns>(10).fill({ passed: 3, runs: 3 }))!.n, 10);
});

test("median: odd, even and no values", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(median([]), null);
});

/** Marsaglia and Tsang's generator of gamma-distributed numbers. */
function gamma(shape: number, random: () => number): number {
  if (shape < 1) return gamma(shape + 1, random) * random() ** (1 / shape);
  const d = shape - 1 / 3;
  while (true) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const v = (1 + normal / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - random()) < normal ** 2 / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}

interface Listing {
  truePassRate: number;
  truePassPower3: number;
  cases: CaseRuns[];
}

/** 5 to 60 cases with 3 to 5 repeats. The chance to pass differs between cases by a beta distribution. */
function simulateListing(random: () => number): Listing {
  const truePassRate = 0.05 + 0.9 * random();
  const correlation = 0.01 + 0.6 * random();
  const [alpha, beta] = [truePassRate, 1 - truePassRate].map((share) => share * (1 / correlation - 1)) as [
    number,
    number,
  ];
  const runs = 3 + Math.floor(random() * 3);
  const simulateCase = (): CaseRuns => {
    const [one, other] = [gamma(alpha, random), gamma(beta, random)];
    const chance = one / (one + other);
    return { passed: Array.from({ length: runs }, random).filter((draw) => draw < chance).length, runs };
  };
  const sum = alpha + beta;
  return {
    truePassRate,
    truePassPower3: (alpha * (alpha + 1) * (alpha + 2)) / (sum * (sum + 1) * (sum + 2)),
    cases: Array.from({ length: 5 + Math.floor(random() * 56) }, simulateCase),
  };
}

const LISTINGS = isFullSize ? 10_000 : 2_000;

test(`passRate and passPowerK: the 95 % intervals cover the true rates of 94 to 96 % of ${LISTINGS} simulated listings`, () => {
  const random = seeded(2_026);
  const covered = { passRate: 0, passPower3: 0, runsAsTrials: 0 };
  // Below 5 % few samples have a pass at all, and Wilson's interval covers nearly always.
  let withPassPower3 = 0;
  const covers = ({ low, high }: { low: number; high: number }, truth: number) =>
    Number(low <= truth && truth <= high);
  for (let count = 0; count < LISTINGS; count++) {
    const { truePassRate, truePassPower3, cases } = simulateListing(random);
    const passed = cases.reduce((sum, one) => sum + one.passed, 0);
    const runs = cases.reduce((sum, one) => sum + one.runs, 0);
    covered.passRate += covers(passRate(cases)!, truePassRate);
    if (truePassPower3 >= 0.05) {
      withPassPower3++;
      covered.passPower3 += covers(passPowerK(cases, 3)!, truePassPower3);
    }
    covered.runsAsTrials += covers(wilsonInterval(passed, runs), truePassRate);
  }
  const isHonest = (count: number, total = LISTINGS) => count / total >= 0.94 && count / total <= 0.96;
  assert.ok(isHonest(covered.passRate), JSON.stringify(covered));
  assert.ok(isHonest(covered.passPower3, withPassPower3), JSON.stringify({ ...covered, withPassPower3 }));
  // Without the effective sample size the test fails, so it can fail.
  assert.ok(covered.runsAsTrials / LISTINGS < 0.9, JSON.stringify(covered));
});
