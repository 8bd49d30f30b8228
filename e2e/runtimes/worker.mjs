import * as sdk from "@stoa/sdk";
import * as webhooks from "@stoa/sdk/webhooks";
import { runProgram } from "./program.mjs";

/** For pages. */
export const runInPage = (input) => runProgram(sdk, webhooks, input);

/** For workers. */
export default {
  fetch: async (request) => Response.json(await runProgram(sdk, webhooks, await request.json())),
};
