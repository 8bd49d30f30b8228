import { type RunFailure, toRunError } from "./ai.ts";
import { pathPart, type RequestOptions } from "./client.ts";
import { readEvents, type StreamEvent } from "./event-stream.ts";
import { TryOutsResource } from "./resources.gen.ts";
import type { Try, TryResult } from "./types.gen.ts";

/** An event of a streamed try. After `try.withheld`, discard the text. */
export type TryEvent =
  | { id: string; type: "output.delta"; data: { text: string } }
  | { id: string; type: "try.completed" | "try.withheld"; data: Omit<TryResult, "output"> };

const ENDS = new Set(["try.completed", "try.withheld", "try.failed"]);
/** The response begins with the first words, for which a try waits up to 120 seconds. */
const FIRST_WORDS_MS = 150_000;

export class TryOuts extends TryOutsResource {
  /**
   * Tries a product and yields the events of the answer. Throws if the try is refused or fails, and if the connection breaks off: tries
   * are not resumed. To stop reading ends the try.
   */
  async *stream(productId: string, body: Try = {}, options: RequestOptions = {}): AsyncGenerator<TryEvent> {
    const path = `/products/${pathPart(productId)}/try`;
    const sent = { body: { ...body, stream: true }, isUnkeyed: true } as const;
    const timeoutMs = options.timeoutMs ?? this.client.timeoutMs ?? FIRST_WORDS_MS;
    const events: AsyncGenerator<StreamEvent> = readEvents({
      open: () => this.client.openStream("POST", path, sent, { ...options, timeoutMs }),
      isLast: ({ type }) => ENDS.has(type),
      maxReconnects: 0,
      signal: options.signal,
    });
    for await (const event of events) {
      if (event.type === "try.failed") throw toRunError(event.data as RunFailure);
      yield event as TryEvent;
    }
  }
}
