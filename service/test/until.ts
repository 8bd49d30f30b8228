import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

/** Longer than any wait on a slow machine, and shorter than a test's timeout. */
const LIMIT_MS = 180_000;
const LOOK_AGAIN_MS = 5;

/** Polls until the result is truthy, and returns it. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  withinMs = LIMIT_MS,
): Promise<NonNullable<T>> {
  return (await becomes(look, Boolean, what, withinMs)) as NonNullable<T>;
}

/** Polls until the value is as expected, and returns it. */
export async function becomes<T>(
  read: () => T | Promise<T>,
  isExpected: (value: T) => unknown,
  what = "the expected value",
  withinMs = LIMIT_MS,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    // A read that began before the end may be answered after it.
    const readAt = performance.now();
    const value = await read();
    if (isExpected(value)) return value;
    assert.ok(readAt < end, `${what}: not within ${withinMs} ms, but ${inspect(value)}`);
    await sleep(LOOK_AGAIN_MS);
  }
}

/** Repeats a job run until it has nothing to do. */
export async function drain(round: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + LIMIT_MS;
  while (await round()) assert.ok(performance.now() < end, `Rounds still find work after ${LIMIT_MS} ms`);
}
