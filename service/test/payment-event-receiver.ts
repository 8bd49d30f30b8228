import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { until } from "./until.ts";

/** A event as a provider posted it. */
export interface PostedEvent {
  body: Buffer;
  headers: Record<string, string>;
}

export interface PaymentEventReceiver {
  url: string;
  events: PostedEvent[];
  /** The first `count` events that name an id, or any of a prefix such as `ord_`, once they are there. */
  eventsAbout(id: string, count?: number): Promise<PostedEvent[]>;
  close(): Promise<void>;
}

/** Takes what a payment provider posts; `answer` says by which status, of the first event, the second and so on. */
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
