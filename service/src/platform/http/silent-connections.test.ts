import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { SilentConnections } from "./silent-connections.ts";

/** Longer than a connection may be silent. */
const BUSY_MS = 260;

test("a request that arrived while the event loop was busy: is read, and a connection without one is closed", async (t) => {
  const server = createServer((_request, response) => response.end("read"));
  const silent = new SilentConnections(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const open = async () => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    await Promise.all([once(socket, "connect"), once(server, "connection")]);
    return socket;
  };
  const [asking, quiet] = [await open(), await open()];
  let received = "";
  asking.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  // In a timer, as at a shutdown: sockets are read after it.
  setTimeout(() => {
    asking.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const later = performance.now() + BUSY_MS;
    t.mock.method(performance, "now", () => later);
    silent.close();
  });
  await Promise.all([once(asking, "close"), once(quiet.resume(), "close")]);
  assert.match(received, /read$/);
  server.close();
});
