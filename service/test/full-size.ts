/**
 * `npm run test:full`, which CI runs, has every case. `npm test` runs a third of what is generated, the same cases each time. It leaves out
 * the files `*.full.*` and the tests with `inFullRun`: those that load the demo shop again, restore it, or kill one process after the other.
 */
export const isFullSize = process.env["STOA_TEST_FULL"] === "1";

/** The options of a test that takes half a minute of both cores. */
export const inFullRun = { skip: isFullSize ? false : "npm run test:full" };

/** How many cases of a generated test to run, of `full` in the full size. */
export const runs = (full: number): number => (isFullSize ? full : Math.ceil(full / 3));

/**
 * Of a list of cases that cost a process each: all in the full size, else every third from `first` on. Tests that share a list
 * begin at different places, so that together they meet every case.
 */
export const sampleOf = <Case>(cases: readonly Case[], first = 0): Case[] =>
  cases.filter((_, index) => isFullSize || index % 3 === first % 3);
