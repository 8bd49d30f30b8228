import type { AccountEvent, Event } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import type { Column } from "../output.ts";
import type { Forwarded } from "./forwarder.ts";

/** What happened to one event. */
interface Line extends Forwarded {
  time: string;
  type: string;
  id: string;
}

const lineColumns: readonly Column<Line>[] = [
  { field: "time", format: ({ time }) => new Date(time).toTimeString().slice(0, 8) },
  { field: "type" },
  { field: "id" },
  { field: "status", format: ({ status, error }) => `→ ${status ?? error}` },
  { field: "durationMs", format: ({ durationMs }) => `${durationMs} ms` },
];

/** Prints what the receiver answered. Returns whether it took the event. */
export function reportForwarded(
  { output }: Cli,
  { id, type }: AccountEvent | Event,
  result: Forwarded,
  url: URL,
): boolean {
  output.item({ time: new Date().toISOString(), type, id, ...result }, lineColumns);
  const isTaken = result.status !== null && result.status >= 200 && result.status < 300;
  if (!isTaken) output.report(`Send it again: stoa events resend ${id} --forward-to ${url.href}`);
  return isTaken;
}
