/**
 * `npm run test:full` (CI) runs every case, `npm test` a third of the generated ones, always the same. `npm test` also skips the
 * files `*.full.*` and the tests with `inFullRun`: they load or restore the demo shop, or kill one process after the other.
 */
export const isFullSize = process.env["STOA_TEST_FULL"] === "1";

/** The options of a test that takes half a minute of both cores. */
export const inFullRun = { skip: isFullSize ? false : "npm run test:full" };

/** The number of generated cases, up to `full`. */
export const runs = (full: number): number => (isFullSize ? full : Math.ceil(full / 3));

/**
 * All cases in full size, else every third from `first` on, for lists whose cases need a process each. Tests of one list
 * use different `first`, so that together they cover it.
 */
export const sampleOf = <Case>(cases: readonly Case[], first = 0): Case[] =>
  cases.filter((_, index) => isFullSize || index % 3 === first % 3);
