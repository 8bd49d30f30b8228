import { setTimeout as sleep } from "node:timers/promises";
import { type Calls, makeCalls } from "../calls.ts";
import { memoryOf } from "../memory.ts";
import type { Options } from "../options.ts";
import { startScript } from "../processes.ts";
import { AT_ONCE, type CallPath, throughStoa } from "../prompt-calls.ts";
import { quantilesOf } from "../quantile.ts";
import { comparedWithAim, megabytes, ms, type Report } from "../report.ts";
import { openShop } from "../shop.ts";

const STREAMS = 1_000;
const WARM_UP = 200;
/** Opened over ten seconds; all are open for twenty more. */
const [WORDS, EVERY_MS] = [31, 1_000];
const OPENED_OVER_MS = 10_000;
const LOOK_EVERY_MS = 500;
const SETTLED_AFTER_MS = 5_000;
const AIM_BYTES = 260e6;

/** Memory of a process with a thousand open streams of runs, and whether all complete. */
export async function measureStreams(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const node = await shop.startNode();
  const [providerUrl] = await startScript(new URL("../ai-provider.ts", import.meta.url), []).waitForLine(
    /^http.*/,
  );
  const bought = { buyer: shop.buyers[1]!, productId: shop.products[1]! };
  const way = await throughStoa(shop, node, bought, providerUrl!);
  await makeCalls({ ...streamsOf(way, AT_ONCE, WARM_UP), atOnce: 16, spreadMs: 0 });
  const before = await rssOf(node.pid);
  const open = makeCalls(streamsOf(way, `words-${WORDS}-${EVERY_MS}`, STREAMS));
  const { times, most } = await withHighest(node.pid, open);
  await sleep(SETTLED_AFTER_MS);
  const after = await rssOf(node.pid);
  await node.end();
  return reportOf(times, { before, most, after });
}

const streamsOf = (way: CallPath, model: string, amount: number): Calls => ({
  ...way.call(model, true),
  ...{ atOnce: amount, amount, spreadMs: OPENED_OVER_MS, until: "first word" },
  warmUpBody: way.call(AT_ONCE, true).body,
});

const rssOf = async (pid: number) => (await memoryOf(pid)).rssBytes;

/** The peak memory of a process during `work`. */
async function withHighest(pid: number, work: Promise<{ times: number[] }>) {
  let isDone = false;
  const done = work.finally(() => (isDone = true));
  // Awaited below.
  done.catch(() => {});
  let most = 0;
  for (; !isDone; await sleep(LOOK_EVERY_MS)) most = Math.max(most, await rssOf(pid));
  return { ...(await done), most };
}

function reportOf(
  times: number[],
  { before, most, after }: Record<"before" | "most" | "after", number>,
): Report {
  const { p50, p99 } = quantilesOf(times);
  const each = (most - before) / STREAMS;
  return {
    columns: ["what", "figure", "aim", "met"],
    rows: [
      ["memory of Node before (RSS)", `${megabytes(before)} MB`, "", ""],
      [
        `with ${STREAMS} open streams, at most`,
        ...comparedWithAim(`${megabytes(most)} MB`, `< ${megabytes(AIM_BYTES)} MB`, most < AIM_BYTES),
      ],
      ["of that for each stream", `${(each / 1000).toFixed(0)} kB`, "", ""],
      [`${SETTLED_AFTER_MS / 1000} s after the last had ended`, `${megabytes(after)} MB`, "", ""],
      ["from the request to its first word, p50", `${ms(p50)} ms`, "", ""],
      ["from the request to its first word, p99", `${ms(p99)} ms`, "", ""],
    ],
    notes: [
      `A process of its own, after ${WARM_UP} streams to warm up. Each stream has ${WORDS} words, one a second; they begin over ${OPENED_OVER_MS / 1000} s. All ${times.length} came to their end.`,
    ],
  };
}
