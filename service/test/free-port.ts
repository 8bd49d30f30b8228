import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** Below the system's ephemeral ports, so that no connection gets it meanwhile. */
const FIRST = 20_000;
const COUNT = 12_000;

/** Processes begin at different ports, so that they rarely meet. */
let tried = process.pid * 31;

/** For a server that cannot choose a port itself. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + (tried++ % COUNT);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`No port is free from ${FIRST} to ${FIRST + COUNT}`);
}

/** Other test processes skip it until this one ends: the UDP port of the same number, which no server uses, is the lock. */
function reserve(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  return new Promise((resolve) => {
    socket.once("error", () => resolve(false));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => resolve(true));
    socket.unref();
  });
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
