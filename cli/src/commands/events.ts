import type { Event } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import { CommandError } from "../errors.ts";
import { findNewestEvent, listenTo, readEventTypes } from "../listen/account-events.ts";
import { eventColumns } from "../listen/event-columns.ts";
import { Forwarder, toForwardUrl } from "../listen/forwarder.ts";
import { reportForwarded } from "../listen/report.ts";
import { readSecret } from "../listen/state.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

interface TailOptions {
  types?: string;
  after?: string;
}

const detailColumns: readonly Column<Event>[] = [
  { field: "id" },
  { field: "type" },
  { field: "created" },
  { field: "data", format: ({ data }) => JSON.stringify(data, null, 2) },
];

export default function define(command: Command): void {
  listCommand<Event, { type?: string }>(command, {
    name: "list",
    description: "List your events, newest first",
    options: (list) => list.option("--type <type>", "only events of this type"),
    examples: ["stoa events list --type purchase.completed --limit 5"],
    columns: eventColumns,
    open: (stoa, page, { type }) => stoa.events.list({ ...page, type }),
  });
  objectCommand<Event>(command, {
    name: "get <event>",
    description: "Show an event",
    examples: ["stoa events get evt_… --json"],
    columns: detailColumns,
    call: async (stoa, _options, [id = ""]) => stoa.events.get(id),
  });
  defineTail(command.command("tail").description("Print events as they happen"));
  defineResend(
    command.command("resend").description("Post an event again to a program, as `stoa listen` does"),
  );
  example(command, "stoa events list --type purchase.completed", "stoa events tail");
}

function defineTail(command: Command): void {
  command
    .option("--types <types>", "only events of these types, with commas")
    .option("--after <event>", "begin after the event with this id")
    .action(
      action<TailOptions>(async (cli, options) => {
        const stoa = await cli.stoa();
        const after = options.after ?? (await findNewestEvent(stoa));
        const types = readEventTypes(options.types);
        cli.output.report("Waiting for events. Ctrl-C ends.");
        for await (const event of listenTo(cli, stoa, { after, types })) cli.output.item(event, eventColumns);
      }),
    );
  example(command, "stoa events tail --types review.created", "stoa events tail --json | jq .data");
}

function defineResend(command: Command): void {
  command
    .argument("<event>", "its id")
    .requiredOption("--forward-to <address>", "where to post it: localhost:4242/path, or a URL")
    .action(
      action<{ forwardTo: string }, [string]>(async (cli, { forwardTo }, id) => {
        const url = toForwardUrl(forwardTo);
        const secret = await readSecret((await cli.settings()).profileName);
        const event = await (await cli.stoa()).events.get(id);
        const options = { url, secret, retryMs: 0, signal: cli.signal, onWait: () => {} };
        const result = await new Forwarder(options).forward(event);
        if (!reportForwarded(cli, event, result, url))
          throw new CommandError(`${url.href} did not accept the event: ${result.status ?? result.error}`);
      }),
    );
  example(command, "stoa events resend evt_… --forward-to localhost:4242/webhooks");
}
