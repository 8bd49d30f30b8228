import { createServer } from "node:net";

/** Below the system's ephemeral ports, so that no other process gets it meanwhile. Each process searches its own range. */
const FIRST = 20_000;
const COUNT = 12_000;

let tried = process.pid * 31;

/** For a server that cannot choose a port itself. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + (tried++ % COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`No port is free from ${FIRST} to ${FIRST + COUNT}`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
