import { setTimeout as sleep } from "node:timers/promises";
import type { Stoa, WebhookDelivery } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example, wholeNumber } from "../command.ts";
import { UsageError } from "../errors.ts";
import type { Column } from "../output.ts";

interface LogsOptions {
  follow?: boolean;
  endpoint?: string;
  limit: number;
  interval: number;
}

/** One attempt of a delivery. */
interface LogLine {
  time: string;
  type: string;
  endpoint: string;
  attempt: number;
  /** null: no response. */
  status: number | null;
  error: string | null;
  durationMs: number;
  eventId: string;
  deliveryId: string;
}

const columns: readonly Column<LogLine>[] = [
  { field: "time" },
  { field: "type" },
  { field: "endpoint" },
  { field: "attempt", format: ({ attempt }) => `#${attempt}` },
  { field: "status", format: ({ status, error }) => status ?? error },
  { field: "durationMs", title: "duration", format: ({ durationMs }) => `${durationMs} ms` },
  { field: "deliveryId", title: "delivery" },
];

const DEFAULT_LINES = 30;
const DEFAULT_INTERVAL_SECONDS = 2;
const MAX_PAGE = 100;
/** At once. An account's quota counts each request. */
const PARALLEL = 4;

export default function define(command: Command): void {
  command
    .option("--follow", "go on with deliveries as they happen")
    .option("--endpoint <webhook>", "only those to the endpoint with this id")
    .option("--limit <n>", `how many of the past to show, up to ${MAX_PAGE}`, wholeNumber(0), DEFAULT_LINES)
    .option("--interval <seconds>", "how often to look with --follow", seconds, DEFAULT_INTERVAL_SECONDS)
    .action(
      action<LogsOptions>(async (cli, options) => {
        const log = new DeliveryLog(await cli.stoa(), options.endpoint);
        const lines = await log.read(Math.min(options.limit, MAX_PAGE));
        for (const line of lines) cli.output.item(line, columns);
        if (!options.follow) return;
        if (lines.length === 0) cli.output.say("Waiting for deliveries. Ctrl-C ends.");
        for (;;) {
          await sleep(options.interval * 1_000, undefined, { signal: cli.signal });
          for (const line of await log.read(MAX_PAGE)) cli.output.item(line, columns);
        }
      }),
    );
  example(command, "stoa logs --follow", "stoa logs --endpoint whk_… --json");
}

function seconds(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new UsageError(`${JSON.stringify(text)} is no number of seconds`);
  return number;
}

/** The attempts of all deliveries, each once. */
class DeliveryLog {
  readonly #stoa: Stoa;
  readonly #endpointId: string | undefined;
  /** Attempts that were read, by delivery. */
  readonly #read = new Map<string, number>();

  constructor(stoa: Stoa, endpointId: string | undefined) {
    this.#stoa = stoa;
    this.#endpointId = endpointId;
  }

  /** What is new in the newest deliveries of each endpoint and in those that are tried again, oldest first. */
  async read(limit: number): Promise<LogLine[]> {
    const isFirst = this.#read.size === 0;
    const changed = (await this.#listDeliveries()).filter(
      ({ id, attempt }) => attempt > this.#attemptsOf(id),
    );
    changed.sort((a, b) => b.createdAt.localeCompare(a.createdAt));
    const shown = changed.slice(0, limit);
    const lines: LogLine[] = [];
    for (let at = 0; at < shown.length; at += PARALLEL)
      lines.push(
        ...(await Promise.all(shown.slice(at, at + PARALLEL).map((each) => this.#readAttempts(each)))).flat(),
      );
    for (const { id, attempt } of changed.slice(limit)) this.#read.set(id, attempt);
    lines.sort((a, b) => a.time.localeCompare(b.time));
    return isFirst ? lines.slice(-limit || lines.length) : lines;
  }

  async #listDeliveries(): Promise<WebhookDelivery[]> {
    const ids = this.#endpointId
      ? [this.#endpointId]
      : (await this.#stoa.webhooks.list({ limit: MAX_PAGE }).page()).data.map(({ id }) => id);
    const pages = await Promise.all(
      ids.flatMap((id) => [
        this.#stoa.webhooks.deliveries(id, { limit: MAX_PAGE }).page(),
        this.#stoa.webhooks.deliveries(id, { limit: MAX_PAGE, status: "retrying" }).page(),
      ]),
    );
    return [...new Map(pages.flatMap(({ data }) => data).map((each) => [each.id, each])).values()];
  }

  async #readAttempts({ id, endpointId, eventId, eventType }: WebhookDelivery): Promise<LogLine[]> {
    const { attempts } = await this.#stoa.deliveries.get(id);
    const seen = this.#attemptsOf(id);
    const ended = attempts.filter(({ n }) => n > seen);
    this.#read.set(id, Math.max(seen, ...attempts.map(({ n }) => n)));
    return ended.map(({ n, at, durationMs, response, error }) => ({
      ...{ time: at, type: eventType, endpoint: endpointId, attempt: n, durationMs, eventId, deliveryId: id },
      ...{ status: response?.status ?? null, error: error?.code ?? null },
    }));
  }

  #attemptsOf = (id: string): number => this.#read.get(id) ?? 0;
}
