import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A program that gets events. */
export async function startEventReceiver(port = 0) {
  const received: Received[] = [];
  const receiver = {
    received,
    status: 200,
    /** Runs before each response. */
    onEvent: async (_event: Received): Promise<void> => {},
    ids: () => received.map(({ id }) => id),
    address: "",
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const event = { id: String(request.headers["webhook-id"]), headers: request.headers, body };
    received.push(event);
    await receiver.onEvent(event);
    response.writeHead(receiver.status).end();
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  receiver.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}
