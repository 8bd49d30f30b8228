import type { Browser, Page } from "playwright-core";

const MICROSECONDS_PER_MS = 1_000;
const CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "blink.user_timing"];

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  /** CPU time of the thread. */
  tdur?: number;
  args: { name?: string; data?: { type?: string } };
}

interface Task {
  start: number;
  cpuMs: number;
}

/** A point of time on the main thread: an event that the page received, or a mark that it set. */
interface Moment {
  name: string;
  at: number;
}

/** What the main thread of a page did while it was traced. */
export class MainThread {
  readonly #tasks: Task[];
  readonly #moments: Moment[];

  constructor(events: readonly TraceEvent[]) {
    const thread = events.find(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
    const own = events
      .filter(({ pid, tid }) => pid === thread?.pid && tid === thread.tid)
      .toSorted((a, b) => a.ts - b.ts);
    this.#tasks = own
      .filter(({ name, tdur }) => name === "RunTask" && tdur !== undefined)
      .map(({ ts, tdur = 0 }) => ({ start: ts, cpuMs: tdur / MICROSECONDS_PER_MS }));
    this.#moments = own.map(({ name, ts, args }) => ({
      name: name === "EventDispatch" ? (args.data?.type ?? name) : name,
      at: ts,
    }));
  }

  /** The moments of a name, in order. */
  moments(name: string): number[] {
    return this.#moments.filter((moment) => moment.name === name).map(({ at }) => at);
  }

  /** CPU time of the tasks from the one at `from` to the one before that at `to`. */
  cpuBetween(from: number, to: number): number {
    const [first, end] = [this.#taskAt(from), this.#taskAt(to)];
    return this.#tasks.slice(first, end).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  }

  #taskAt(moment: number): number {
    return this.#tasks.findLastIndex(({ start }) => start <= moment);
  }
}

export async function traceMainThread(browser: Browser, page: Page, work: () => Promise<void>) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await work();
  const trace = JSON.parse(String(await browser.stopTracing())) as { traceEvents: TraceEvent[] };
  return new MainThread(trace.traceEvents);
}
