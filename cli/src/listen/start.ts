import type { AccountEvent, AccountEventType, Stoa } from "@stoa/sdk";
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

/** Events until Ctrl-C. Without a word about a lost connection, silence would look like peace. */
export function listenTo(
  { output, signal }: Cli,
  stoa: Stoa,
  request: { after: string; types: AccountEventType[] | undefined },
): AsyncGenerator<AccountEvent> {
  const onReconnect = (failures: number) => {
    if (failures === 0) output.say("The connection to the service broke off. Reconnecting.");
  };
  return stoa.events.listen({ ...request, signal, onReconnect });
}
