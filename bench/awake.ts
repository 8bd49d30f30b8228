import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { start } from "./processes.ts";

/** util-linux */
const CHRT = "/usr/bin/chrt";
/** Ends by itself when its parent was killed. */
const LOOP = "for (;;) if (process.ppid !== Number(process.argv[1])) process.exit()";

/**
 * Keeps the processors from sleeping while the CPU time of short work is measured: a virtual machine gives an idle processor back to its
 * host, and is slow for a while after it wakes up. Loops of the scheduler's idle class run only when nothing else wants the processor. Not
 * for times by the clock: processes that wake each other find no idle processor. Linux only.
 */
export async function keepAwake<T>(work: () => Promise<T>): Promise<T> {
  const count = existsSync(CHRT) ? availableParallelism() : 0;
  const loops = Array.from({ length: count }, () =>
    start(CHRT, ["--idle", "0", process.execPath, "-e", LOOP, String(process.pid)], {}),
  );
  try {
    return await work();
  } finally {
    await Promise.all(loops.map((loop) => loop.end()));
  }
}
