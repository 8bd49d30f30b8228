import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";

/**
 * What happens to a request: it passes, gets no answer, is lost, is answered in the service's place (before or after the service did),
 * reaches the service late, also when its client has left, or its response is lost or cut after so many bytes.
 */
export type Fault =
  | "pass"
  | "lose-request"
  | "lose-response"
  | "hang"
  | { status: number; body?: string; headers?: Record<string, string> }
  | { statusAfterWork: number }
  | { delayMs: number }
  | { cutAfterBytes: number };

export interface FaultProxy {
  origin: string;
  /** Requests that arrived, in order. */
  requests: { method: string; url: string; headers: IncomingMessage["headers"] }[];
  /** Decides over each request; `n` counts from 0. */
  decide: (n: number) => Fault;
  close(): Promise<void>;
}

/** An HTTP proxy in front of a service that fails as networks do. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const proxy: Omit<FaultProxy, "origin"> = { requests: [], decide: () => "pass", close };
  const server = createServer((incoming, outgoing) => {
    const n = proxy.requests.length;
    const { method = "GET", url = "/", headers } = incoming;
    proxy.requests.push({ method, url, headers });
    const fault = proxy.decide(n);
    if (fault === "hang") return;
    if (fault === "lose-request") return void outgoing.destroy();
    if (typeof fault === "object" && "delayMs" in fault) return delay(target, incoming, outgoing, fault);
    if (typeof fault === "object" && "status" in fault) return respond(incoming, outgoing, fault);
    forward(target, incoming, outgoing, fault);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  async function close() {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
  const { port } = server.address() as AddressInfo;
  return Object.assign(proxy, { origin: `http://127.0.0.1:${port}` });
}

function respond(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, body = "", headers = {} }: { status: number; body?: string; headers?: Record<string, string> },
): void {
  incoming.resume().on("end", () => outgoing.writeHead(status, headers).end(body));
}

function delay(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { delayMs }: { delayMs: number },
): void {
  const forwardLate = (body: Buffer) =>
    setTimeout(() => forward(target, incoming, outgoing, "pass", Readable.from([body])), delayMs);
  // A client that left before its body was complete sent nothing.
  buffer(incoming).then(forwardLate, () => outgoing.destroy());
}

function forward(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  fault: Fault,
  body: Readable = incoming,
): void {
  const url = new URL(incoming.url ?? "/", target);
  const headers = { ...incoming.headers, host: url.host };
  const onward = request(url, { method: incoming.method ?? "GET", headers }, (response) => {
    if (fault === "lose-response") {
      response.resume().on("end", () => outgoing.destroy());
      return;
    }
    if (typeof fault === "object" && "statusAfterWork" in fault) {
      response.resume().on("end", () => outgoing.writeHead(fault.statusAfterWork).end());
      return;
    }
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    let left =
      typeof fault === "object" && "cutAfterBytes" in fault ? fault.cutAfterBytes : Number.POSITIVE_INFINITY;
    response.on("data", (chunk: Buffer) => {
      if (left <= 0) return;
      const isLast = chunk.length >= left;
      // What was written before the cut arrives.
      outgoing.write(chunk.subarray(0, left), () => isLast && outgoing.destroy());
      left -= chunk.length;
    });
    // A response whose end was cut off has none.
    response.on("end", () => left > 0 && outgoing.end());
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  body.pipe(onward);
}
