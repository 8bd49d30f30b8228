import type { AccountEventType, Stoa } from "@stoa/sdk";

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
