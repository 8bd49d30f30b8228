import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import {
  CircuitBreaker,
  type CircuitPermit,
  FAULTS_TO_OPEN,
  JITTER,
  MAX_OPEN_MS,
  OPEN_MS,
  TRIAL_MS,
} from "./circuit-breaker.ts";

function breakerOn({ random = () => 0 }: { random?: () => number } = {}) {
  const clock = { ms: 1_000 };
  const breaker = new CircuitBreaker({ now: () => clock.ms, random });
  const enter = (name = "key") => {
    const result = breaker.enter(name);
    return typeof result === "number" ? assert.fail(`refused for ${result} s`) : result;
  };
  const refusedFor = (name = "key") => {
    const result = breaker.enter(name);
    return typeof result === "number" ? result : null;
  };
  const opens = (name = "key") => {
    for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) enter(name).onFailure();
  };
  return { clock, breaker, enter, refusedFor, opens };
}

suite("circuit", () => {
  test("five consecutive failures: open it for 30 s, and enter returns the rest", () => {
    const { clock, enter, refusedFor } = breakerOn();
    for (let fault = 0; fault < 5; fault++) enter().onFailure();
    assert.equal(refusedFor(), 30);
    clock.ms += 29_001;
    assert.equal(refusedFor(), 1);
    clock.ms += 998;
    assert.equal(refusedFor(), 1);
    clock.ms += 1;
    enter();
  });

  test("names: have separate circuits", () => {
    const { enter, opens } = breakerOn();
    opens("one");
    enter("other").onSuccess();
  });

  test("success between failures: resets the count; an abandoned call does not", () => {
    const { enter, refusedFor } = breakerOn();
    for (let fault = 0; fault < 4; fault++) enter().onFailure();
    enter().onSuccess();
    for (let fault = 0; fault < 4; fault++) enter().onFailure();
    enter().onAbandon();
    assert.equal(refusedFor(), null);
    enter().onFailure();
    assert.equal(refusedFor(), 30);
  });

  test("half-open: admits one trial, whose success closes it", () => {
    const { clock, enter, refusedFor, opens, breaker } = breakerOn();
    opens();
    clock.ms += OPEN_MS;
    const result = Array.from({ length: 20 }, () => breaker.enter("key"));
    assert.equal(result.filter((one) => typeof one === "object").length, 1);
    assert.deepEqual(new Set(result.filter((one) => typeof one === "number")), new Set([1]));
    (result[0] as CircuitPermit).onSuccess();
    for (let fault = 0; fault < FAULTS_TO_OPEN - 1; fault++) enter().onFailure();
    assert.equal(refusedFor(), null);
  });

  test("failed trials: double the pause up to five minutes", () => {
    const { clock, enter, refusedFor, opens } = breakerOn();
    opens();
    for (const pauseMs of [30_000, 60_000, 120_000, 240_000, MAX_OPEN_MS, MAX_OPEN_MS]) {
      assert.equal(refusedFor(), pauseMs / 1000);
      clock.ms += pauseMs;
      enter().onFailure();
    }
    clock.ms += MAX_OPEN_MS;
    enter().onSuccess();
    opens();
    assert.equal(refusedFor(), 30, "after a success the first pause is short again");
  });

  test("closed, with responses that begin and break off: opens", () => {
    const { enter, refusedFor } = breakerOn();
    for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) {
      const permit = enter();
      permit.onFirstByte();
      permit.onFailure();
    }
    assert.equal(refusedFor(), 30);
  });

  test("abandoned or unfinished trial: allows another one", () => {
    const { clock, enter, refusedFor, opens } = breakerOn();
    opens();
    clock.ms += OPEN_MS;
    enter().onAbandon();
    enter();
    clock.ms += TRIAL_MS - 1;
    assert.equal(refusedFor(), 1);
    clock.ms += 1;
    enter().onSuccess();
    assert.equal(refusedFor(), null);
  });

  test("late results of calls from before it opened: are ignored", () => {
    const { clock, enter, refusedFor, opens } = breakerOn();
    const [one, other, third] = [enter(), enter(), enter()];
    opens();
    one.onSuccess();
    assert.equal(refusedFor(), 30);
    clock.ms += 10_000;
    other.onFailure();
    assert.equal(refusedFor(), 20);
    clock.ms += 20_000;
    const trial = enter();
    third.onAbandon();
    assert.equal(refusedFor(), 1, "the trial is still running");
    trial.onFailure();
    trial.onSuccess();
    assert.equal(refusedFor(), 60, "only the first result of a trial counts");
  });

  test("closed by a first byte: later failures count", () => {
    const { clock, enter, refusedFor, opens } = breakerOn();
    opens();
    clock.ms += OPEN_MS;
    const trial = enter();
    trial.onFirstByte();
    trial.onFailure();
    for (let fault = 0; fault < FAULTS_TO_OPEN - 2; fault++) enter().onFailure();
    assert.equal(refusedFor(), null);
    enter().onFailure();
    assert.equal(refusedFor(), 30);
  });

  test("ten thousand later circuits: drop the oldest one", () => {
    const { enter, refusedFor, opens } = breakerOn();
    opens("first");
    for (let at = 0; at < 10_000; at++) enter(`other ${at}`).onFailure();
    assert.equal(refusedFor("first"), null);
    opens("last");
    assert.equal(refusedFor("last"), 30);
  });
});

const endings = ["onSuccess", "onFailure", "onAbandon"] as const;
const waiting = fc.record({ does: fc.constant("wait" as const), ms: fc.nat({ max: 90_000 }) });

test("random sequential calls: are admitted and refused by the rule", () => {
  const calling = fc.record({
    does: fc.constant("call" as const),
    ending: fc.constantFrom(...endings, "onFailure" as const),
  });
  const steps = fc.array(fc.oneof({ weight: 5, arbitrary: calling }, waiting), { maxLength: 100 });
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 0.25, 1), (steps, drawn) => {
      const { clock, breaker } = breakerOn({ random: () => drawn });
      let faults = 0;
      let pauses = 0;
      let opensAt = 0;
      for (const step of steps) {
        if (step.does === "wait") {
          clock.ms += step.ms;
          continue;
        }
        const result = breaker.enter("key");
        if (pauses > 0 && clock.ms < opensAt) {
          assert.equal(result, Math.ceil((opensAt - clock.ms) / 1000));
          continue;
        }
        assert.ok(typeof result === "object", `refused after ${faults} consecutive failures`);
        result[step.ending]();
        if (step.ending === "onSuccess") faults = pauses = 0;
        if (step.ending === "onFailure" && ++faults >= FAULTS_TO_OPEN) {
          const pauseMs = Math.min(OPEN_MS * 2 ** pauses++, MAX_OPEN_MS);
          opensAt = clock.ms + pauseMs * (1 + JITTER * drawn);
        }
      }
    }),
  );
});

test("random overlapping calls: never open without five failures, try one at a time, and always try again", () => {
  const entering = fc.constant({ does: "enter" as const });
  const ending = fc.record({ does: fc.constantFrom(...endings, "onFailure" as const), which: fc.nat() });
  const steps = fc.array(
    fc.oneof({ weight: 5, arbitrary: entering }, { weight: 5, arbitrary: ending }, waiting),
    { maxLength: 150 },
  );
  fc.assert(
    fc.property(steps, (steps) => {
      const { clock, breaker } = breakerOn();
      const open: CircuitPermit[] = [];
      let faults = 0;
      for (const step of steps) {
        if (step.does === "wait") clock.ms += step.ms;
        else if (step.does === "enter") {
          const result = breaker.enter("key");
          if (typeof result === "object") open.push(result);
          else assert.ok(faults >= FAULTS_TO_OPEN && result >= 1 && result <= MAX_OPEN_MS / 1000);
        } else if (open.length > 0) {
          const [permit] = open.splice(step.which % open.length, 1) as [CircuitPermit];
          permit[step.does]();
          if (step.does === "onFailure") faults++;
        }
      }
      for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) {
        const result = breaker.enter("key");
        if (typeof result === "object") result.onFailure();
      }
      clock.ms += MAX_OPEN_MS + TRIAL_MS;
      const passes = [1, 2, 3].map(() => breaker.enter("key"));
      assert.deepEqual(
        passes.map((result) => typeof result),
        ["object", "number", "number"],
      );
      (passes[0] as CircuitPermit).onSuccess();
      assert.equal(typeof breaker.enter("key"), "object");
    }),
  );
});
