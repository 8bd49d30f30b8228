import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example, wholeNumber } from "../command.ts";
import { UsageError } from "../errors.ts";
import { DeliveryLog, deliveryColumns } from "../logs/delivery-log.ts";
import { followLog, type Log } from "../logs/follow.ts";
import { RequestLog, requestColumns } from "../logs/request-log.ts";
import type { Column } from "../output.ts";

interface LogsOptions {
  follow?: boolean;
  deliveries?: boolean;
  endpoint?: string;
  status?: string;
  method?: string;
  path?: string;
  limit: number;
  interval: number;
}

const MAX_LINES = 100;
const DEFAULT_LINES = 30;
const DEFAULT_INTERVAL_SECONDS = 2;

export default function define(command: Command): void {
  command
    .option("--follow", "go on with what happens")
    .option("--status <status>", "only requests with this status, such as 404 or 4xx")
    .option("--method <method>", "only requests with this method")
    .option("--path <path>", "only requests to paths that begin with this")
    .option("--deliveries", "show attempts to deliver webhooks in place of requests")
    .option("--endpoint <webhook>", "only deliveries to the endpoint with this id")
    .option("--limit <n>", `how many of the past to show, up to ${MAX_LINES}`, wholeNumber(0), DEFAULT_LINES)
    .option(
      "--interval <seconds>",
      "how often to read with --follow; less often when few requests of the quota are left",
      seconds,
      DEFAULT_INTERVAL_SECONDS,
    )
    .addHelpText(
      "after",
      "\nShows your requests to the API, oldest first. They are stored for 7 days. Its own requests count in your quota, of which it leaves at least half to other programs.",
    )
    .action(
      action<LogsOptions>(async (cli, options) => {
        const stoa = await cli.stoa();
        const { status, method, path, endpoint, deliveries } = options;
        if (deliveries || endpoint)
          return show(cli, options, new DeliveryLog(stoa, endpoint), deliveryColumns);
        await show(cli, options, new RequestLog(stoa, { status, method, path }), requestColumns);
      }),
    );
  example(command, "stoa logs --follow", "stoa logs --status 4xx --json", "stoa logs --deliveries --follow");
}

async function show<T extends object>(
  cli: Cli,
  { limit, follow, interval, deliveries, endpoint }: LogsOptions,
  log: Log<T>,
  columns: readonly Column<T>[],
): Promise<void> {
  const { output } = cli;
  for (const line of await log.read(Math.min(limit, MAX_LINES))) output.item(line, columns);
  if (!follow) return;
  output.report("Waiting for more. Ctrl-C ends.");
  const isByEvents = deliveries === true || endpoint !== undefined;
  await followLog(cli, { log, columns, intervalMs: interval * 1_000, isByEvents });
}

function seconds(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new UsageError(`${JSON.stringify(text)} is no number of seconds`);
  return number;
}
