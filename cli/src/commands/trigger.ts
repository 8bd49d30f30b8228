import type { AccountEvent, AccountEventType, Event, Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { findNewestEvent, listenTo } from "../listen/account-events.ts";
import { eventColumns } from "../listen/event-columns.ts";
import { scenarios } from "../trigger/scenarios.ts";

const TIMEOUT_MS = 30_000;
const MAX_EVENTS = 20;

export default function define(command: Command): void {
  command
    .argument("[event]", "its type, such as purchase.completed")
    .option("--list", "show the types, and what happens for each")
    .addHelpText(
      "after",
      "\nThe event is a real one: the command sends the requests of a user. It works in test environments only, and deletes what it can.",
    )
    .action(action<{ list?: boolean }, [string | undefined]>(trigger));
  example(command, "stoa trigger purchase.completed", "stoa trigger --list");
}

async function trigger(cli: Cli, { list }: { list?: boolean }, type: string | undefined): Promise<void> {
  if (list) return listScenarios(cli);
  const scenario = type !== undefined && Object.hasOwn(scenarios, type) ? scenarios[type] : undefined;
  if (type === undefined || !scenario)
    throw new UsageError(
      type === undefined ? "Name the type of an event" : `${type} is no type of event that can be triggered`,
      "stoa trigger --list shows them.",
    );
  const stoa = await cli.stoa();
  await mustBeTestEnvironment(stoa);
  const earlier = new Set((await listEvents(stoa, type)).map(({ id }) => id));
  const after = await findNewestEvent(stoa);
  await scenario.run({ cli, stoa: await cli.stoaBeyondInterrupt() });
  cli.output.object(await untilEvent(cli, stoa, { type, after, earlier }), eventColumns);
}

const listScenarios = ({ output }: Cli): Promise<void> =>
  output.list(
    Object.entries(scenarios).map(([type, { summary }]) => ({ type, summary })),
    [
      { field: "type", title: "Event" },
      { field: "summary", title: "What happens" },
    ],
  );

/** A test environment gives every account payment methods that move no money; only these have no date. */
async function mustBeTestEnvironment(stoa: Stoa): Promise<void> {
  const { data } = await stoa.paymentMethods.list({ limit: 100 }).page();
  if (data.some(({ createdAt }) => createdAt === null)) return;
  throw new CommandError(
    "This service is not a test environment: an event would cost real money and confuse real people",
    "Use a service that was started with STOA_ENVIRONMENT=test.",
  );
}

const listEvents = async (stoa: Stoa, type: string): Promise<Event[]> =>
  (await stoa.events.list({ type, limit: MAX_EVENTS }).page()).data;

interface Expected {
  type: string;
  after: string;
  /** Events of the type that an earlier command triggered, and that were numbered since. */
  earlier: ReadonlySet<string>;
}

/** Payments and payouts complete a moment after their request. */
async function untilEvent(cli: Cli, stoa: Stoa, { type, after, earlier }: Expected): Promise<AccountEvent> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const signal = AbortSignal.any([cli.signal, limit]);
  const types = [type as AccountEventType];
  try {
    for await (const event of listenTo(cli, stoa, { after, types, signal }))
      if (!earlier.has(event.id)) return event;
  } catch (error) {
    if (!limit.aborted || cli.signal.aborted) throw error;
  }
  throw new CommandError(
    `The requests succeeded, but no ${type} came within ${TIMEOUT_MS / 1_000} seconds`,
    "Does a worker of the service run? `stoa events list` shows events that come later.",
  );
}
