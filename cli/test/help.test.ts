import assert from "node:assert/strict";
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
