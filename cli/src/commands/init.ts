import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import { UsageError } from "../errors.ts";

export default function define(command: Command): void {
  command
    .argument("[folder]", "a new or empty folder", ".")
    .option("--workflow", "a workflow in place of a prompt")
    .action(
      action<{ workflow?: boolean }, [string]>(async (cli, { workflow }, folder) => {
        await mustBeEmpty(folder);
        const { samples } = await import("../init/samples.ts");
        const { replaceFile } = await import("../project/files.ts");
        const files = samples[workflow ? "workflow" : "prompt"];
        for (const [name, text] of Object.entries(files)) await replaceFile(join(folder, name), text);
        cli.output.report(`Wrote ${Object.keys(files).join(" and ")} to ${folder}. Next:`);
        cli.output.report(`  stoa products push${folder === "." ? "" : ` ${folder}`}`);
      }),
    );
  example(command, "stoa init my-prompt", "stoa init my-workflow --workflow");
}

/** A new repository has `.git` and the like. */
async function mustBeEmpty(folder: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    throw new UsageError(
      `Cannot use ${folder} (${code})`,
      "Name a new or empty folder: stoa init my-prompt.",
    );
  }
  if (names.some((name) => !name.startsWith(".")))
    throw new UsageError(`${folder} is not empty`, "Name a new or empty folder: stoa init my-prompt.");
}
