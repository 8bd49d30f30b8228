import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { until } from "./until.ts";

/** An event as posted by the provider. */
export interface PostedEvent {
  body: Buffer;
  headers: Record<string, string>;
}

export interface PaymentEventReceiver {
  url: string;
  events: PostedEvent[];
  /** Resolves with the first `count` events for an id, or for a prefix such as `ord_`. */
  eventsAbout(id: string, count?: number): Promise<PostedEvent[]>;
  close(): Promise<void>;
}

/** Accepts the provider's events; `answer` gives the status by index. */
export async function startPaymentEventReceiver(
  answer: (nth: number) => number = () => 200,
): Promise<PaymentEventReceiver> {
  const events: PostedEvent[] = [];
  const server = createServer(async (request, response) => {
    const headers = request.headers as Record<string, string>;
    events.push({ body: await buffer(request), headers });
    response.writeHead(answer(events.length)).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notices`,
    events,
    eventsAbout: async (id, count = 1) => {
      const found = () => events.filter((event) => names(event, id));
      await until(`${count} events that name ${id}`, () => found().length >= count);
      return found().slice(0, count);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const names = (event: PostedEvent, id: string): boolean =>
  Object.values(parseEvent(event)).some(
    (value) => value === id || (id.endsWith("_") && value.startsWith(id)),
  );

export const parseEvent = ({ body }: PostedEvent): Record<string, string> =>
  JSON.parse(body.toString("utf8"));
