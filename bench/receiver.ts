/** A webhook receiver that takes everything at once, in a process of its own. Prints its URL; GET tells when what came in. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const arrivals = new Map<string, number>();
const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.end(JSON.stringify([...arrivals]));
    arrivals.clear();
    return;
  }
  request.resume().on("end", () => {
    response.end();
    const id = String(request.headers["webhook-id"]);
    if (!arrivals.has(id)) arrivals.set(id, performance.timeOrigin + performance.now());
  });
});
server.listen(0, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
