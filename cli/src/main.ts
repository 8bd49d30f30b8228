import { exitCodes } from "./errors.ts";
import { runCommandLine } from "./program.ts";

// A reader such as `head` that has enough closes the pipe; a disk may be full.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.stderr.write(`error: Cannot write the output (${error.code})\n`);
  process.exit(error.code === "EPIPE" ? exitCodes.ok : exitCodes.api);
});
process.stderr.on("error", () => process.exit(exitCodes.api));

process.exitCode = await runCommandLine(process.argv.slice(2));
