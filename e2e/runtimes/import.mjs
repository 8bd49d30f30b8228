import { readFileSync } from "node:fs";
import * as sdk from "@stoa/sdk";
import * as webhooks from "@stoa/sdk/webhooks";
import { runProgram } from "./program.mjs";

const input = JSON.parse(readFileSync("input.json", "utf8"));
console.log(JSON.stringify(await runProgram(sdk, webhooks, input)));
