import type { Execution } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";

const statuses: Record<string, [Tone, string]> = {
  queued: ["neutral", "Queued"],
  running: ["accent", "Running"],
  waiting: ["warning", "Waits for approval"],
  completed: ["good", "Completed"],
  failed: ["bad", "Failed"],
  canceled: ["neutral", "Canceled"],
};

export const runStatus = ({ status }: Pick<Execution, "status">): [Tone, string] =>
  statuses[status] ?? ["neutral", status];
