/**
 * A webhook receiver in its own process that accepts everything at once, except at /hangs. Prints its URL; GET returns
 * the arrival times.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const HANGS = "/hangs";
const arrivals = new Map<string, number>();
const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.end(JSON.stringify([...arrivals]));
    arrivals.clear();
    return;
  }
  request.resume().on("end", () => {
    if (request.url === HANGS) return;
    response.end();
    const id = String(request.headers["webhook-id"]);
    if (!arrivals.has(id)) arrivals.set(id, performance.timeOrigin + performance.now());
  });
});
server.listen(0, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
