import { AbortError, ConnectionError, StoaError } from "./errors.ts";
import { backoffMs, sleep } from "./sleep.ts";

/** One server-sent event, its data parsed. */
export interface StreamEvent<T = unknown> {
  id: string;
  type: string;
  data: T;
}

export interface StreamOptions<T> {
  /** Opens the stream after an event; null: from its beginning. */
  open: (lastEventId: string | null) => Promise<Response>;
  /** Whether the stream ends with this event. One that ends without it was cut off. */
  isLast: (event: StreamEvent<T>) => boolean;
  lastEventId?: string | null | undefined;
  /** How often in a row the stream is opened again without a new event. */
  maxReconnects: number;
  /** Before each pause after which the stream is opened again; `failures` counts from 0 since the last event. */
  onReconnect?: ((failures: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** The service sends a comment every 15 seconds: a connection that is silent for three of them is dead. */
const SILENCE_MS = 45_000;
const BACKOFF = { firstMs: 250, maxMs: 10_000 };

/** Yields each event once, in order. A connection that breaks off is opened again after the last event. */
export async function* readEvents<T>(options: StreamOptions<T>): AsyncGenerator<StreamEvent<T>> {
  let lastEventId = options.lastEventId ?? null;
  for (let failures = 0; ; failures++) {
    try {
      for await (const event of parseEvents(await options.open(lastEventId), options.signal)) {
        failures = 0;
        lastEventId = event.id || lastEventId;
        if (event.data === "") continue;
        const parsed = { ...event, data: JSON.parse(event.data) as T };
        yield parsed;
        if (options.isLast(parsed)) return;
      }
      if (failures >= options.maxReconnects)
        throw new ConnectionError("The stream was cut off before its last event");
    } catch (error) {
      if (options.signal?.aborted) throw new AbortError("The stream was aborted", { cause: error });
      if (!isTransient(error) || failures >= options.maxReconnects) throw error;
    }
    options.onReconnect?.(failures);
    await sleep(backoffMs(failures, BACKOFF), options.signal);
  }
}

const isTransient = (error: unknown) => error instanceof StoaError && error.isRetryable;

/** An event as it comes, its data not parsed. */
type RawEvent = StreamEvent<string>;

/** The format of the HTML standard, section 9.2.6. */
async function* parseEvents(response: Response, signal: AbortSignal | undefined): AsyncGenerator<RawEvent> {
  let event: RawEvent = { id: "", type: "message", data: "" };
  for await (const line of readLines(response, signal)) {
    if (line === "") {
      if (event.id !== "" || event.data !== "") yield { ...event, data: event.data.replace(/\n$/, "") };
      event = { id: "", type: "message", data: "" };
      continue;
    }
    const [, field, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "id") event.id = value;
    if (field === "event") event.type = value;
    if (field === "data") event.data += `${value}\n`;
  }
}

/** Complete lines. What is left when the connection breaks off is part of an event that comes again. */
async function* readLines(response: Response, signal: AbortSignal | undefined): AsyncGenerator<string> {
  if (!response.body) throw new ConnectionError("The stream has no body");
  const reader = response.body.getReader();
  const abort = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", abort, { once: true });
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (true) {
      const { done, value } = await readWithin(reader, SILENCE_MS);
      if (done) return;
      text += decoder.decode(value, { stream: true });
      // A carriage return at the end may be half of a line end.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    abort();
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionError(`The stream was silent for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    if (error instanceof ConnectionError) throw error;
    throw new ConnectionError("The stream broke off", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
