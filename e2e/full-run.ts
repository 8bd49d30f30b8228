import { test as addTest, type TestContext } from "node:test";
import { inFullRun } from "@stoa/service/test/full-size.ts";

type Work = (t: TestContext) => Promise<void> | void;

/** The main path of an area. */
export const everyRun = (name: string, work: Work) => addTest(name, work);

/** Other cases run in `npm run test:full` (CI) only, since a browser takes seconds for each. */
export const test = (name: string, work: Work) => addTest(name, inFullRun, work);
