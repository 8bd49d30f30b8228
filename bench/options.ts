import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "./processes.ts";

export interface Options {
  scenarios: string[];
  /** The texts that the shop is filled with. */
  prompts: string;
  /** Where a CPU profile of the service goes; without, none is made. */
  profile: string | undefined;
}

export function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      prompts: { type: "string", default: join(ROOT, "service/src/demo/prompts.json") },
      profile: { type: "string" },
    },
  });
  return { scenarios: positionals, prompts: values.prompts, profile: values.profile };
}
