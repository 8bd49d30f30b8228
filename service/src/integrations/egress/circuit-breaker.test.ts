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
    const passed = breaker.enter(name);
    return typeof passed === "number" ? assert.fail(`refused for ${passed} s`) : passed;
  };
  const refusedFor = (name = "key") => {
    const passed = breaker.enter(name);
    return typeof passed === "number" ? passed : null;
  };
  const opens = (name = "key") => {
    for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) enter(name).onFailure();
  };
  return { clock, breaker, enter, refusedFor, opens };
}

suite("a circuit", () => {
  test("opens after five faults in a row, for 30 s, and tells how many are left", () => {
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

  test("is one for each name", () => {
    const { enter, opens } = breakerOn();
    opens("one");
    enter("other").onSuccess();
  });

  test("counts in a row alone: an answer between begins anew, a caller who gave up does not", () => {
    const { enter, refusedFor } = breakerOn();
    for (let fault = 0; fault < 4; fault++) enter().onFailure();
    enter().onSuccess();
    for (let fault = 0; fault < 4; fault++) enter().onFailure();
    enter().onAbandon();
    assert.equal(refusedFor(), null);
    enter().onFailure();
    assert.equal(refusedFor(), 30);
  });

  test("lets one trial through of many, and closes when it was answered", () => {
    const { clock, enter, refusedFor, opens, breaker } = breakerOn();
    opens();
    clock.ms += OPEN_MS;
    const passed = Array.from({ length: 20 }, () => breaker.enter("key"));
    assert.equal(passed.filter((one) => typeof one === "object").length, 1);
    assert.deepEqual(new Set(passed.filter((one) => typeof one === "number")), new Set([1]));
    (passed[0] as CircuitPermit).onSuccess();
    for (let fault = 0; fault < FAULTS_TO_OPEN - 1; fault++) enter().onFailure();
    assert.equal(refusedFor(), null);
  });

  test("opens for twice as long after each trial that failed, up to five minutes", () => {
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
    assert.equal(refusedFor(), 30, "and begins with the short one when it was closed between");
  });

  test("that is closed is not mended by beginnings of answers that all break off", () => {
    const { enter, refusedFor } = breakerOn();
    for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) {
      const pass = enter();
      pass.onFirstByte();
      pass.onFailure();
    }
    assert.equal(refusedFor(), 30);
  });

  test("makes another trial when nothing was learned of the first, or when nobody ended it", () => {
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

  test("hears no late word of calls that began before it opened", () => {
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
    assert.equal(refusedFor(), 1, "the trial is still under way");
    trial.onFailure();
    trial.onSuccess();
    assert.equal(refusedFor(), 60, "a trial speaks once");
  });

  test("that the beginning of an answer has closed counts what fails behind it", () => {
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

  test("is forgotten when ten thousand others fail after it", () => {
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

test("calls one after the other are let through and refused as five faults in a row and doubling pauses say", () => {
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
        const passed = breaker.enter("key");
        if (pauses > 0 && clock.ms < opensAt) {
          assert.equal(passed, Math.ceil((opensAt - clock.ms) / 1000));
          continue;
        }
        assert.ok(typeof passed === "object", `refused after ${faults} faults in a row`);
        passed[step.ending]();
        if (step.ending === "onSuccess") faults = pauses = 0;
        if (step.ending === "onFailure" && ++faults >= FAULTS_TO_OPEN) {
          const pauseMs = Math.min(OPEN_MS * 2 ** pauses++, MAX_OPEN_MS);
          opensAt = clock.ms + pauseMs * (1 + JITTER * drawn);
        }
      }
    }),
  );
});

test("calls that overlap open nothing without five faults, are tried one at a time, and always again", () => {
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
          const passed = breaker.enter("key");
          if (typeof passed === "object") open.push(passed);
          else assert.ok(faults >= FAULTS_TO_OPEN && passed >= 1 && passed <= MAX_OPEN_MS / 1000);
        } else if (open.length > 0) {
          const [pass] = open.splice(step.which % open.length, 1) as [CircuitPermit];
          pass[step.does]();
          if (step.does === "onFailure") faults++;
        }
      }
      for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) {
        const passed = breaker.enter("key");
        if (typeof passed === "object") passed.onFailure();
      }
      clock.ms += MAX_OPEN_MS + TRIAL_MS;
      const passes = [1, 2, 3].map(() => breaker.enter("key"));
      assert.deepEqual(
        passes.map((passed) => typeof passed),
        ["object", "number", "number"],
      );
      (passes[0] as CircuitPermit).onSuccess();
      assert.equal(typeof breaker.enter("key"), "object");
    }),
  );
});
