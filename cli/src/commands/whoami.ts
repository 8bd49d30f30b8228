import type { Account } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import type { Column } from "../output.ts";

const columns: Column<Account>[] = [
  { field: "email" },
  { field: "name" },
  { field: "id" },
  { field: "role" },
  { field: "plan" },
];

export default function define(command: Command): void {
  command.action(
    action(async (cli) => {
      const stoa = await cli.stoa();
      const { baseUrl, profileName, profile } = await cli.settings();
      const account = await stoa.account.get();
      cli.output.object(account, columns);
      const source = profile ? `profile ${profileName}` : "given key";
      cli.output.report(cli.output.style("dim", `${baseUrl}, ${source}`, process.stderr));
    }),
  );
  example(command, "stoa whoami --fields email,plan");
}
