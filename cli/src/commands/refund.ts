import type { Command } from "commander";
import { action, example } from "../command.ts";
import { refundColumns } from "./refunds.ts";

interface RefundOptions {
  reason: string;
  details?: string;
}

export default function define(command: Command): void {
  command
    .argument("<order>", "ord_… from `stoa purchases list`")
    .requiredOption(
      "--reason <text>",
      "why: not_working, not_as_described, accidental, duplicate, or your own words",
    )
    .option("--details <text>", "what the seller should know")
    .action(
      action<RefundOptions, [string]>(async (cli, { reason, details }, order) => {
        const stoa = await cli.stoa();
        const refund = await stoa.refunds.create(order, { reason, ...(details && { details }) });
        cli.output.object(refund, refundColumns);
      }),
    );
  example(command, "stoa refund ord_… --reason not_working");
}
