/**
 * Runs the files that its parent sends, in one process, so that the service is imported once. Each file is a suite of
 * its own with its own hooks.
 */
import { createHook } from "node:async_hooks";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import "../service/test/seed.ts";
import { NO_MORE } from "./test-protocol.ts";

const FILE_MINUTES = Number(process.env["STOA_TEST_FILE_MINUTES"]);

/** The parent answers a request with the absolute path of a file, or with NO_MORE. */
function nextFile(): Promise<string> {
  return new Promise((resolve) => {
    process.once("message", (file) => resolve(file as string));
    process.send!({ type: "worker:free" });
  });
}

/**
 * `node:test` finds the parent of a new test or hook by an async hook that runs for every promise, a tenth of all CPU time.
 * A file registers its tests while it is imported, so the hook is off while they run. A running test that adds
 * one uses its context: `t.test`, `t.after`.
 */
const asyncHooks = Object.getPrototypeOf(createHook({}));
const { enable } = asyncHooks;
let parentHook: ReturnType<typeof createHook> | undefined;
asyncHooks.enable = function (this: ReturnType<typeof createHook>) {
  parentHook ??= this;
  return enable.call(this);
};

// Without its hook, `node:test` only warns about an error that no test awaits.
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => process.send!({ type: "worker:error", error: inspect(error) }));

// The parent has ended.
process.once("disconnect", () => process.exit());

for (let file = await nextFile(); file !== NO_MORE; file = await nextFile()) {
  const url = pathToFileURL(file).href;
  parentHook?.enable();
  await suite(file, { timeout: FILE_MINUTES * 60_000 }, async () => {
    await import(url);
    parentHook?.disable();
  });
}
// A socket or timer of a failed test must not keep the process alive.
process.exit();
