import type { AddressInfo } from "node:net";
import { v7 } from "uuid";
import type { Config } from "../../core/config/config.ts";
import type { ListeningAddress } from "../../core/loopback.ts";
import { createServer } from "../../core/node-http.ts";

const LISTEN_ERRORS: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (host, port) =>
    `Another program listens on port ${port} of ${host}: set PORT to a free one, or end that program.`,
  EACCES: (host, port) => `Port ${port} of ${host} is not ours to open: set PORT to one above 1023.`,
  EADDRNOTAVAIL: (host) => `HOST is ${host}, which is no address of this machine.`,
};
const startingBody = () =>
  JSON.stringify({
    success: false,
    error: {
      code: "SERVICE_UNAVAILABLE",
      message: "The service is starting.",
      docUrl: "/docs/errors#SERVICE_UNAVAILABLE",
    },
    meta: { timestamp: new Date().toISOString(), request_id: v7() },
  });

/** Reserves the port while the database starts, so that a port in use fails at once. */
export interface ReservedPort {
  address: ListeningAddress;
  /** Releases the port for the service. */
  release(): Promise<void>;
}

/** Answers 503 until the release; `/healthz` answers as the service does. */
export async function reservePort({ host, port }: Pick<Config, "host" | "port">): Promise<ReservedPort> {
  const server = createServer((request, response) => {
    const isAlive = request.url === "/healthz";
    response
      .writeHead(isAlive ? 200 : 503, {
        "content-type": "application/json; charset=utf-8",
        connection: "close",
        ...(!isAlive && { "retry-after": "1" }),
      })
      .end(isAlive ? '{"status":"ok"}' : startingBody());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = LISTEN_ERRORS[error.code ?? ""];
      reject(why ? new Error(why(host, port)) : error);
    });
    server.listen(port, host, resolve);
  });
  return {
    address: server.address() as AddressInfo,
    release: () =>
      new Promise((resolve) => {
        if (!server.listening) return resolve();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
