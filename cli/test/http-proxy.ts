import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** A proxy that runs `onRequest` before the response of each request reaches the client. */
export async function startHttpProxy(origin: string, onRequest: (line: string) => void) {
  const server = createServer(async (request, response) => {
    const { method = "GET", url = "/", headers } = request;
    const { host: _, connection: __, ...rest } = headers as Record<string, string>;
    const body = await buffer(request);
    const init = { method, headers: rest, ...(body.length > 0 && { body: new Uint8Array(body) }) };
    const answer = await fetch(new URL(url, origin), init);
    onRequest(`${method} ${url}`);
    const content = Buffer.from(await answer.arrayBuffer());
    const type = answer.headers.get("content-type") ?? "text/plain";
    response.writeHead(answer.status, { "content-type": type }).end(content);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
