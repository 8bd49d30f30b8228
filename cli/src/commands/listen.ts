import type { AccountEventType, Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example, wholeNumber } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { findNewestEvent, listenTo, readEventTypes } from "../listen/account-events.ts";
import { eventColumns } from "../listen/event-columns.ts";
import { Forwarder, isThisMachine, toForwardUrl } from "../listen/forwarder.ts";
import { reportForwarded } from "../listen/report.ts";
import { Position, readSecret } from "../listen/state.ts";

interface ListenOptions {
  forwardTo?: string;
  events?: string;
  printSecret?: boolean;
  after?: string;
  fromNow?: boolean;
  retrySeconds: number;
}

export const DEFAULT_RETRY_SECONDS = 300;

export default function define(command: Command): void {
  command
    .option("--forward-to <address>", "where to post the events: localhost:4242/path, or a URL")
    .option("--events <types>", "only events of these types, with commas")
    .option("--after <event>", "begin after the event with this id")
    .option("--from-now", "begin with the next event, not where the last command stopped")
    .option("--print-secret", "print the secret of the signatures and end")
    .option(
      "--retry-seconds <n>",
      "how long to try a receiver that does not respond",
      wholeNumber(0),
      DEFAULT_RETRY_SECONDS,
    )
    .addHelpText(
      "after",
      "\nEvents arrive signed, one after the other, in order. The next start goes on after the last event that the receiver answered.",
    )
    .action(action<ListenOptions>(listen));
  example(
    command,
    "stoa listen --forward-to localhost:4242/webhooks",
    "stoa listen --forward-to 4242 --events purchase.completed,purchase.refunded",
    "WEBHOOK_SECRET=$(stoa listen --print-secret) node server.js",
  );
}

async function listen(cli: Cli, options: ListenOptions): Promise<void> {
  if (options.fromNow && options.after) throw new UsageError("Give either --from-now or --after");
  if (options.printSecret) return cli.output.line(await readSecret((await cli.settings()).profileName));
  const stoa = await cli.stoa();
  const types = readEventTypes(options.events);
  if (options.forwardTo !== undefined) return forwardEvents(cli, stoa, options, options.forwardTo, types);
  const after = options.after ?? (await findNewestEvent(stoa));
  cli.output.report("Waiting for events. Ctrl-C ends.");
  for await (const event of listenTo(cli, stoa, { after, types })) cli.output.item(event, eventColumns);
}

async function forwardEvents(
  cli: Cli,
  stoa: Stoa,
  options: ListenOptions,
  forwardTo: string,
  types: AccountEventType[] | undefined,
): Promise<void> {
  const url = toForwardUrl(forwardTo);
  const { baseUrl, profileName } = await cli.settings();
  const { id: accountId } = await stoa.account.get();
  const position = new Position({ baseUrl, accountId, forwardTo: url.href });
  const release = await position.claim();
  try {
    const secret = await readSecret(profileName);
    const stored = options.fromNow ? null : (options.after ?? (await position.read()));
    const after = stored ?? (await findNewestEvent(stoa));
    // So that the next start gets what happens from now on, even if this one ends before the first event.
    if (stored === null) await position.write(after);
    introduce(cli, url, secret, stored);
    const forwarder = new Forwarder({
      ...{ url, secret, signal: cli.signal, retryMs: options.retrySeconds * 1_000 },
      onWait: (error) => cli.output.report(`${url.host} does not respond (${error}). Trying again.`),
    });
    for await (const event of listenTo(cli, stoa, { after, types })) {
      const result = await forwarder.forward(event);
      await position.write(event.id);
      reportForwarded(cli, event, result, url);
    }
  } catch (error) {
    throw toPositionError(error);
  } finally {
    await release();
  }
}

function introduce({ output }: Cli, url: URL, secret: string, stored: string | null): void {
  output.report(`Forwarding events to ${url.href}`);
  if (!isThisMachine(url)) output.report(`Note: ${url.hostname} is not this machine.`);
  output.report(`Signing secret: ${secret}`);
  output.report(stored ? `Going on after ${stored}. Ctrl-C ends.` : "Waiting for events. Ctrl-C ends.");
}

function toPositionError(error: unknown): unknown {
  if ((error as { code?: string }).code !== "EVENT_NOT_FOUND") return error;
  return new CommandError(
    "The event after which to go on is older than 30 days, or of another account",
    "Begin with the next event: --from-now. `stoa events list` shows those that are stored.",
  );
}
