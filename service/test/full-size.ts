/**
 * `npm run test:full` (CI) runs every case, `npm test` a part of the generated ones, always the same. `npm test` also skips the
 * files `*.full.*` and the tests with `inFullRun`: most of them need the demo shop, a browser or a process of their own.
 */
export const isFullSize = process.env["STOA_TEST_FULL"] === "1";

/** The options of a test that takes seconds, and whose main path another test covers. */
export const inFullRun = { skip: isFullSize ? false : "npm run test:full" };

/** The number of generated cases or concurrent requests: `full` in full size, else a fifth of it, or another part. */
export const runs = (full: number, part = 5): number => (isFullSize ? full : Math.ceil(full / part));

/** All cases in full size, else every third, or nth, from `first` on. */
export const sampleOf = <Case>(cases: readonly Case[], first = 0, nth = 3): Case[] =>
  cases.filter((_, index) => isFullSize || index % nth === first % nth);

/** All cases in full size, else one, for lists whose cases need a process each. Tests of one list use different ones. */
export const oneOf = <Case>(cases: readonly Case[], index = 0): Case[] =>
  isFullSize ? [...cases] : cases.slice(index, index + 1);
