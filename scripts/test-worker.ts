/**
 * Runs the test files that its parent names, one after the other, in one process: the imports of the service are paid for once
 * a process, not once a file. Each file is a suite of its own, so that its hooks are its own.
 */
import { suite } from "node:test";
import { pathToFileURL } from "node:url";
import "../service/test/seed.ts";
import { NO_MORE } from "./test-protocol.ts";

const FILE_MINUTES = Number(process.env["STOA_TEST_FILE_MINUTES"]);

/** The parent answers a request for work with the absolute path of a file, or with NO_MORE. */
function nextFile(): Promise<string> {
  return new Promise((resolve) => {
    process.once("message", (file) => resolve(file as string));
    process.send!({ type: "worker:free" });
  });
}

// The parent was killed.
process.once("disconnect", () => process.exit());

for (let file = await nextFile(); file !== NO_MORE; file = await nextFile()) {
  const url = pathToFileURL(file).href;
  await suite(file, { timeout: FILE_MINUTES * 60_000 }, async () => void (await import(url)));
}
// A failed test may have left a socket or a timer behind, which must not keep the process.
process.exit();
