import type { RequestOptions } from "./client.ts";
import { withLastEventId } from "./client.ts";
import { readEvents } from "./event-stream.ts";
import { EventsResource } from "./resources.gen.ts";
import type { AccountEvent, AccountEventType } from "./types.gen.ts";

export interface ListenOptions extends RequestOptions {
  /** Goes on after the event with this id. Without it, events from now on. */
  after?: string | undefined;
  /** Only events of these types. */
  types?: AccountEventType[] | undefined;
  /** Called when the connection broke off, before it is opened again; `failures` counts from 0 since the last event. */
  onReconnect?: ((failures: number) => void) | undefined;
}

export class Events extends EventsResource {
  /**
   * Yields the account's events as they happen: each once, in order, also over broken connections and restarts of the service. To go on after
   * a restart of your own program, store the id of the last event and pass it as `after`.
   */
  async *listen({ after, types, onReconnect, ...options }: ListenOptions = {}): AsyncGenerator<AccountEvent> {
    const query = { types: types?.join(",") };
    const open = (lastEventId: string | null) =>
      this.client.openStream("GET", "/events/stream", { query }, withLastEventId(options, lastEventId));
    const stream = readEvents<AccountEvent>({
      ...{ open, signal: options.signal, lastEventId: after ?? null },
      isLast: () => false,
      maxReconnects: Number.POSITIVE_INFINITY,
      onReconnect,
    });
    for await (const { data } of stream) yield data;
  }
}
