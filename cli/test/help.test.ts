import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { suite, test } from "node:test";
import type { Command } from "commander";
import { commandNames, createProgram } from "../src/program.ts";

const program = await createProgram(commandNames());

/** Commands that do something, with their whole names. */
const listCommands = (command: Command, path = ""): [string, Command][] =>
  command.commands.flatMap((each): [string, Command][] => {
    const name = `${path} ${each.name()}`;
    return each.commands.length > 0 ? listCommands(each, name) : [[name, each]];
  });

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  return text;
}

suite("help of each command", () => {
  for (const [name, command] of [["", program], ...listCommands(program, "stoa")] as [string, Command][])
    test(`${name || "stoa"}: describes it and its options, and has an example that starts with it`, () => {
      const help = helpOf(command);
      assert.ok(command.description().length > 10, "a description");
      for (const option of command.options)
        assert.ok(option.description, `${option.flags} has no description`);
      assert.match(help, new RegExp(`Example:\n {2}\\$ ${name.trim()}`));
    });
});

suite("documents", () => {
  const names = new Map([["stoa", program], ...listCommands(program, "stoa")] as [string, Command][]);
  /** The command that a text names, and its options. */
  function findCommand(text: string): [Command, string[]] | undefined {
    const words = text.split(/\s+/);
    for (let length = Math.min(3, words.length); length > 0; length--) {
      const command = names.get(words.slice(0, length).join(" "));
      if (command && (length > 1 || words[1]?.startsWith("-"))) return [command, words.slice(length)];
    }
    return undefined;
  }

  for (const path of ["docs/guides/cli.md", "cli/SKILL.md", "README.md"])
    test(`${path}: names commands and options that exist`, async () => {
      const text = await readFile(new URL(`../../${path}`, import.meta.url), "utf8");
      const lines = text.match(/(?<![\w/@-])stoa [a-z][^`|)\n]*/g) ?? [];
      assert.ok(lines.length > 1);
      for (const line of lines) {
        const found = findCommand(line);
        const isGroup = program.commands.some((each) => each.name() === line.split(" ")[1]);
        assert.ok(found ?? isGroup, `${line}: no such command`);
        const [command, words] = found ?? [program, line.split(/\s+/)];
        for (const option of words.filter((word) => word.startsWith("--")))
          assert.ok(
            [...command.options, ...program.options].some(
              (each) => each.long === option.replace(/[^a-z-].*/, ""),
            ),
            `${line}: no option ${option}`,
          );
      }
    });
});
