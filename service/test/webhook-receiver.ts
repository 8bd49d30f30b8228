import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export interface ReceivedRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A status, or a function that writes the response. */
export type ReceiverResponse = number | ((response: ServerResponse, received: ReceivedRequest) => void);

export interface WebhookReceiver {
  url: string;
  received: ReceivedRequest[];
  /** The answer to all requests from now on; 200 by default. */
  answer: ReceiverResponse;
  close(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const sockets = new Set<Socket>();
  const server = createServer(async (request, response) => {
    const received = { path: request.url!, headers: request.headers, body: await textOf(request) };
    receiver.received.push(received);
    const { answer } = receiver;
    if (typeof answer === "function") answer(response, received);
    else response.writeHead(answer).end("ok");
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    answer: 200,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}
