/** `npm run test:full` runs generated tests at their full size. `npm test` runs a third of the cases, the same ones each time. */
export const isFullSize = process.env["STOA_TEST_FULL"] === "1";

/** How many cases of a generated test to run, of `full` in the full size. */
export const runs = (full: number): number => (isFullSize ? full : Math.ceil(full / 3));
