/** The fastest possible answer of Node: the bytes of a file for every request. Prints its origin. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const bytes = readFileSync(process.argv[2]!);
const headers = { "content-type": "application/json; charset=utf-8", "content-length": bytes.length };
const server = createServer((_request, response) => response.writeHead(200, headers).end(bytes));
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
