import type { TestContext } from "node:test";

/** Holds up calls of a writer's method until `count` have come, so that they share statements. */
export function callTogether<Method extends string>(
  t: TestContext,
  writer: Record<Method, (...values: never[]) => Promise<unknown>>,
  method: Method,
  count: number,
): void {
  const call = writer[method].bind(writer) as (...values: unknown[]) => Promise<unknown>;
  const all = Promise.withResolvers<void>();
  let come = 0;
  const held = async (...values: unknown[]) => {
    if (++come === count) all.resolve();
    await all.promise;
    return call(...values);
  };
  t.mock.method(writer, method, held as never);
}
