import type { AccountEvent, AccountEventType, ListenOptions, Stoa } from "@stoa/sdk";
import type { Cli } from "../cli.ts";

/** Before the oldest event that is stored. */
const BEGINNING = "evt_00000000000000000000000000";

/** The position from now on. */
export async function findNewestEvent(stoa: Stoa): Promise<string> {
  const { data } = await stoa.events.list({ limit: 1 }).page();
  return data[0]?.id ?? BEGINNING;
}

/** Types with commas. */
export function readEventTypes(text: string | undefined): AccountEventType[] | undefined {
  const types = text?.split(",").map((type) => type.trim());
  return types?.filter((type) => type !== "");
}

/** Yields events until Ctrl-C. Reports a lost connection: without the line, it would look like a time without events. */
export function listenTo(
  cli: Cli,
  stoa: Stoa,
  { after, types, signal = cli.signal }: Pick<ListenOptions, "after" | "types" | "signal">,
): AsyncGenerator<AccountEvent> {
  const onReconnect = (failures: number) => {
    // The signal ends the connection, too.
    if (failures === 0 && !signal.aborted)
      cli.output.report("The connection to the service broke off. Reconnecting.");
  };
  return stoa.events.listen({ after, types, signal, onReconnect });
}
