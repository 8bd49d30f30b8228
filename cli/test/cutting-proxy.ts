import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy whose connections a test breaks, and whose target moves as a service does that is restarted elsewhere. */
export async function startCuttingProxy(origin: string) {
  let target = new URL(origin);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const service = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Breaks all connections. */
    cut() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    moveTo(next: string) {
      target = new URL(next);
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
