import { createServer } from "node:net";

/** Below those that the system itself gives out, so that nobody gets one meanwhile; each process looks in a place of its own. */
const FIRST = 20_000;
const COUNT = 12_000;

let tried = process.pid * 31;

/** A port that nobody listens on, for a server that must be told one. */
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
