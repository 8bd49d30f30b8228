#!/usr/bin/env node
// Plain JavaScript, so that a Node too old to read TypeScript can still say so.
import module from "node:module";
import { fileURLToPath } from "node:url";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `stoa-server needs Node 22.19 or newer and runs on ${process.version}. Run it by npm (npm start, npx stoa-server), which brings Node 24 along on Linux.`,
  );
  process.exit(1);
}
// What Node makes of our sources is kept for the next start, which then loads no compiler for TypeScript at all. Beside the
// code, since whoever can write there can change that anyway; where nobody can, nothing is kept.
module.enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/stoa-server", import.meta.url)));
const [command = "start", ...options] = process.argv.slice(2);
if (command === "start" && options.length === 0) await import("../src/start.ts");
else await import("../src/main.ts");
