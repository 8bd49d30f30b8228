import type { QuotaWindow } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import { time } from "../format.ts";
import type { Column } from "../output.ts";

const columns: Column<QuotaWindow>[] = [
  { field: "seconds", title: "Within", format: ({ seconds }) => spanOf(seconds) },
  { field: "used", title: "Used" },
  { field: "limit", title: "Limit" },
  { field: "remaining", title: "Left" },
  { field: "resetAt", title: "Resets", format: ({ resetAt }) => time(resetAt) },
];

export default function define(command: Command): void {
  const usage = command
    .command("usage")
    .description("Show how many requests your plan has left")
    .action(
      action(async (cli) => {
        const { plan, windows } = await (await cli.stoa()).account.usage.get();
        if (!cli.output.isJson) cli.output.report(`Plan ${plan}`);
        await cli.output.list(windows, columns);
      }),
    );
  example(usage, "stoa account usage");
}

function spanOf(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ];
  const [size, name] = units.find(([size]) => seconds % size === 0) ?? [1, "second"];
  const count = seconds / size;
  return count === 1 ? `a ${name}`.replace("a hour", "an hour") : `${count} ${name}s`;
}
