/** Runs one command line after the other in one process, since a start of `stoa` takes longer than most commands. */
import module from "node:module";
import { Readable, Writable } from "node:stream";

/** A command line, and where it runs. */
export interface CommandRequest {
  args: readonly string[];
  folder: string;
  env: Record<string, string>;
  input: string;
}

const sources: Record<string, string> = {
  "@stoa/sdk": new URL("../../sdk/src/index.ts", import.meta.url).href,
  "@stoa/sdk/webhooks": new URL("../../sdk/src/webhooks.ts", import.meta.url).href,
};
module.registerHooks({
  resolve: (specifier, context, next) => next(sources[specifier] ?? specifier, context),
});

const output: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
for (const name of ["stdout", "stderr"] as const)
  define(
    name,
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        output[name].push(chunk);
        done();
      },
    }),
  );
const { runCommandLine } = await import("../src/program.ts");

function define(name: "stdin" | "stdout" | "stderr", stream: Readable | Writable): void {
  Object.defineProperty(process, name, { configurable: true, value: stream });
}

process.on("message", async ({ args, folder, env, input }: CommandRequest) => {
  process.chdir(folder);
  process.env = env;
  process.exitCode = undefined;
  define("stdin", Readable.from(input === "" ? [] : [Buffer.from(input)]));
  for (const chunks of Object.values(output)) chunks.length = 0;
  const code = await runCommandLine(args);
  process.removeAllListeners("SIGINT");
  const [stdout, stderr] = [output.stdout, output.stderr].map((chunks) => Buffer.concat(chunks).toString());
  process.send!({ code, stdout, stderr });
});

// The parent has ended.
process.once("disconnect", () => process.exit());
