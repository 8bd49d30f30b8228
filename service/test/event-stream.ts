import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";

const LIMIT_MS = 120_000;

/** One block of a stream. */
export interface ReceivedEvent {
  id: string;
  type: string;
  data: string;
}

/** A client of a stream of server-sent events. */
export interface EventReader {
  status: number;
  headers: IncomingHttpHeaders;
  /** Blocks with data. */
  events: ReceivedEvent[];
  pings: number;
  /** For Last-Event-ID on reconnecting. */
  lastEventId: string;
  /** The body of an answer that is no stream. */
  text: string;
  /** Resolves after `count` events in all. */
  waitForEvents(count: number): Promise<ReceivedEvent[]>;
  /** Resolves when the condition is true, checked after each chunk. */
  until(condition: () => boolean): Promise<void>;
  /** Resolves with whether the stream ended cleanly. */
  ended: Promise<boolean>;
  pause(): void;
  resume(): void;
  close(): void;
}

/** With `json`, sends a POST; without a key, as a guest. */
export async function openEventStream(
  origin: string,
  key: string | null,
  path = "/v1/events/stream",
  headers: Record<string, string> = {},
  json?: unknown,
): Promise<EventReader> {
  const posted = json === undefined ? {} : { "content-type": "application/json" };
  const authorization = key === null ? {} : { authorization: `Bearer ${key}` };
  const all = { ...authorization, ...posted, ...headers };
  const method = json === undefined ? "GET" : "POST";
  const outgoing = request(origin + path, { agent: false, method, headers: all });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing
      .on("response", resolve)
      .on("error", reject)
      .end(json === undefined ? undefined : JSON.stringify(json));
  });
  const watchers = new Set<() => void>();
  const look = () => {
    for (const watcher of watchers) watcher();
  };
  let rest = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    listener.text += listener.status === 200 ? "" : chunk;
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop()!;
    for (const block of blocks) take(listener, block);
    look();
  });
  const ended = new Promise<boolean>((resolve) => {
    response.on("close", () => resolve(response.complete)).on("error", () => {});
  });
  const listener: EventReader = {
    status: response.statusCode!,
    headers: response.headers,
    events: [],
    pings: 0,
    lastEventId: "",
    text: "",
    async waitForEvents(count) {
      await listener.until(() => listener.events.length >= count);
      return listener.events;
    },
    until: (condition) =>
      new Promise((resolve, reject) => {
        const watcher = () => {
          if (!condition()) return;
          watchers.delete(watcher);
          resolve();
        };
        watchers.add(watcher);
        watcher();
        const progress = () => `after ${listener.events.length} events`;
        void ended.then(() => reject(new Error(`the stream ended ${progress()}`)));
        setTimeout(() => reject(new Error(`the stream stood still ${progress()}`)), LIMIT_MS).unref();
      }),
    ended,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => void outgoing.destroy(),
  };
  return listener;
}

function take(listener: EventReader, block: string): void {
  if (block.startsWith(":")) listener.pings++;
  const fields = Object.fromEntries(
    block.split("\n").map((line) => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)];
    }),
  );
  if (fields["id"] !== undefined) listener.lastEventId = fields["id"];
  if (fields["data"] === undefined) return;
  listener.events.push({ id: fields["id"]!, type: fields["event"]!, data: fields["data"] });
}
