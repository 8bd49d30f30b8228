/**
 * Runs the files that its parent sends, in one process, so that the service is imported once. Each file is a suite of
 * its own with its own hooks.
 */
import { createHook } from "node:async_hooks";
import { createRequire } from "node:module";
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

const require = createRequire(import.meta.url);

/**
 * `require` loads ES modules, too, unless they await at their top. `import` visits all modules of the service again,
 * with several promises for each: 12 ms of CPU time for each file.
 */
async function load(file: string): Promise<void> {
  try {
    require(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
    await import(pathToFileURL(file).href);
  }
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
  parentHook?.enable();
  await suite(file, { timeout: FILE_MINUTES * 60_000 }, async () => {
    await load(file);
    parentHook?.disable();
  });
}
// A socket or timer of a failed test must not keep the process alive.
process.exit();
