const { readFileSync } = require("node:fs");
const sdk = require("@stoa/sdk");
const webhooks = require("@stoa/sdk/webhooks");
const { runProgram } = require("./program.mjs");

const input = JSON.parse(readFileSync("input.json", "utf8"));
runProgram(sdk, webhooks, input).then((result) => console.log(JSON.stringify(result)));
