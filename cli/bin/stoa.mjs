#!/usr/bin/env node
// Plain JavaScript, so that a Node that is too old can still report it.
import { existsSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// Removes a key given as an argument from the list of processes.
process.title = "stoa";

const [major, minor] = process.versions.node.split(".").map(Number);
const built = new URL("../dist/main.js", import.meta.url);
const source = new URL("../src/main.ts", import.meta.url);

if (major < 20 || (major === 20 && minor < 12)) {
  console.error(`stoa needs Node 20.12 or newer and runs on ${process.version}.`);
  process.exitCode = 1;
} else if (existsSync(source)) await runSource();
else {
  // In the user's own folder: another user could put code into a shared one.
  // biome-ignore lint/style/noProcessEnv: before any source is loaded
  module.enableCompileCache?.(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "stoa"));
  await import(built);
}

/** In the repository the sources run, with those of the SDK. */
async function runSource() {
  if (major < 22 || (major === 22 && minor < 19)) {
    console.error(`In the repository, stoa needs Node 22.19 or newer and runs on ${process.version}.`);
    process.exitCode = 1;
    return;
  }
  // Without compiled code of an earlier start, a start takes three times as long.
  module.enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/stoa", import.meta.url)));
  const sources = {
    "@stoa/sdk": new URL("../../sdk/src/index.ts", import.meta.url).href,
    "@stoa/sdk/webhooks": new URL("../../sdk/src/webhooks.ts", import.meta.url).href,
  };
  module.registerHooks({
    resolve: (specifier, context, next) => next(sources[specifier] ?? specifier, context),
  });
  await import(source);
}
