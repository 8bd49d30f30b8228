/** `npm run test:full`, which CI runs, has every case. `npm test` runs a third of what is generated, the same cases each time. */
export const isFullSize = process.env["STOA_TEST_FULL"] === "1";

/** How many cases of a generated test to run, of `full` in the full size. */
export const runs = (full: number): number => (isFullSize ? full : Math.ceil(full / 3));

/**
 * Of a list of cases that cost a process each: all in the full size, else every third from `first` on. Tests that share a list
 * begin at different places, so that together they meet every case.
 */
export const sampleOf = <Case>(cases: readonly Case[], first = 0): Case[] =>
  cases.filter((_, index) => isFullSize || index % 3 === first % 3);
