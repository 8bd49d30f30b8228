import type { Command } from "commander";
import { example } from "../command.ts";
import { defineAttachments } from "../products/attachment-commands.ts";
import { defineChanges } from "../products/change-commands.ts";
import { defineProject } from "../products/project-commands.ts";
import { defineReads } from "../products/read-commands.ts";
import { defineTransfer } from "../products/transfer-commands.ts";

export default function define(command: Command): void {
  for (const part of [defineReads, defineChanges, defineAttachments, defineProject, defineTransfer])
    part(command);
  example(command, "stoa products list --mine", "stoa products push my-prompt --publish");
}
