import type { Server, Socket } from "node:net";

/** A client that opens a connection for a request sends it sooner. */
const WAIT_MS = 250;

/**
 * Connections without a byte from their client: browsers and HTTP clients open some in advance. Node does not count them as idle,
 * so a shutdown would wait for them until its end.
 */
export class SilentConnections {
  readonly #openedAt = new Map<Socket, number>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      this.#openedAt.set(socket, performance.now());
      socket.once("close", () => this.#openedAt.delete(socket));
    });
  }

  /** After the event loop has read what arrived while it was busy, which may be the request of such a connection. */
  close(): void {
    setImmediate(() => this.#closeSilent());
  }

  #closeSilent(): void {
    for (const [socket, openedAt] of this.#openedAt)
      if (socket.bytesRead === 0 && performance.now() - openedAt > WAIT_MS) socket.destroy();
  }
}
