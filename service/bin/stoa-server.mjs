#!/usr/bin/env node
// Plain JavaScript, so that a Node too old to read TypeScript can still say so.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `stoa-server needs Node 22.19 or newer and runs on ${process.version}. Run it by npm (npm start, npx stoa-server), which brings Node 24 along on Linux.`,
  );
  process.exit(1);
}
await import("../src/main.ts");
