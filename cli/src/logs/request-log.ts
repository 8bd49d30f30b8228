import type { LoggedRequest, RequestLogsListQuery, Stoa } from "@stoa/sdk";
import type { Column } from "../output.ts";
import type { Log } from "./follow.ts";

export const requestColumns: readonly Column<LoggedRequest>[] = [
  { field: "at", title: "time" },
  { field: "method" },
  { field: "path" },
  {
    field: "status",
    format: ({ status, errorCode }) => (errorCode ? `${status} ${errorCode}` : status),
  },
  { field: "durationMs", title: "duration", format: ({ durationMs }) => `${Math.round(durationMs)} ms` },
  { field: "requestId", title: "request" },
];

const MAX_PAGE = 100;
/** Of the ids that were read: more than requests can arrive late. */
const MAX_READ = 10_000;

/** The requests of an account, each once. */
export class RequestLog implements Log<LoggedRequest> {
  readonly cost = 1;
  readonly #stoa: Stoa;
  readonly #query: RequestLogsListQuery;
  /** In the order of reading. */
  readonly #read = new Set<string>();
  #isFirst = true;

  constructor(stoa: Stoa, query: RequestLogsListQuery) {
    this.#stoa = stoa;
    this.#query = query;
  }

  /** What is new, oldest first; the first time at most `limit` of the newest. */
  async read(limit: number): Promise<LoggedRequest[]> {
    const fresh: LoggedRequest[] = [];
    let before: string | undefined;
    for (;;) {
      const { data } = await this.#stoa.requestLogs.list({ ...this.#query, before, limit: MAX_PAGE }).page();
      const unread = data.filter(({ id }) => !this.#read.has(id));
      fresh.push(...unread);
      before = data.at(-1)?.id;
      if (this.#isFirst || unread.length < data.length || data.length < MAX_PAGE) break;
    }
    for (const { id } of fresh.toReversed()) this.#read.add(id);
    this.#forgetOldest();
    const shown = this.#isFirst ? fresh.slice(0, limit) : fresh;
    this.#isFirst = false;
    return shown.toReversed();
  }

  #forgetOldest(): void {
    for (const id of this.#read) {
      if (this.#read.size <= MAX_READ) return;
      this.#read.delete(id);
    }
  }
}
