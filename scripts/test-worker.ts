/**
 * Runs the files that its parent sends, in one process, so that the service is imported once. Each file is a suite of
 * its own with its own hooks.
 */
import { suite } from "node:test";
import { pathToFileURL } from "node:url";
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

// The parent has ended.
process.once("disconnect", () => process.exit());

for (let file = await nextFile(); file !== NO_MORE; file = await nextFile()) {
  const url = pathToFileURL(file).href;
  await suite(file, { timeout: FILE_MINUTES * 60_000 }, async () => void (await import(url)));
}
// A socket or timer of a failed test must not keep the process alive.
process.exit();
