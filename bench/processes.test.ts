import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "./processes.ts";

test("waitForLine, the process ends before: the error has its last lines, also of stderr", async () => {
  const script = "console.log('starting'); console.error('no space left'); process.exitCode = 3;";
  const child = start(process.execPath, ["--eval", script], { errors: "read" });
  await assert.rejects(child.waitForLine(/ready/), ({ message }: Error) => {
    const [first, ...lines] = message.split("\n");
    assert.match(first!, / ended with 3$/);
    // The two streams are read independently.
    assert.deepEqual(lines.sort(), ["no space left", "starting"]);
    return true;
  });
});
