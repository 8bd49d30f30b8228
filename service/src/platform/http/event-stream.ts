import { type EventEmitter, once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Endpoint } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { followSignal } from "../../core/follow-signal.ts";
import { readEach } from "../../core/read-each.ts";
import { reportResponse } from "./report-response.ts";
import type { EventStreamResponse, StreamedEvent } from "./route.ts";
import type { ServerDependencies } from "./server-dependencies.ts";
import { startAuthChecks } from "./stream-auth-checks.ts";

export const streamTimeouts = {
  /** Interval of the comments that keep proxies from closing the connection. */
  pingMs: 15_000,
  /** Interval of the checks of the credential: a stream ends within a second of its revocation. */
  authCheckMs: 500,
  /** How long a client may read nothing while bytes wait for it. */
  stallMs: 30_000,
};
export type StreamTimeouts = typeof streamTimeouts;

/** The delay after which an EventSource reconnects. */
const RECONNECT_MS = 2_000;

/**
 * Sends a stream until its source ends, its client disconnects or stalls, or its credential ends. Requests the next
 * event only after the client has read the previous one.
 */
export function sendEventStream(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
  stream: EventStreamResponse,
): FastifyReply {
  reply.hijack();
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders);
  reply.raw.write(`retry: ${RECONNECT_MS}\n\n`);
  void run(server, endpoint, request, reply.raw, stream).finally(() => {
    // The hook after a response does not run for a stream.
    server.ctx.log.info({ request: request.id, route: endpoint.path }, "a stream is over");
    reportResponse(server, request, reply.statusCode);
  });
  return reply;
}

async function run(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
  raw: ServerResponse,
  stream: EventStreamResponse,
): Promise<void> {
  const times = { ...streamTimeouts, ...server.streamTimeouts };
  const over = new AbortController();
  const leave = () => over.abort();
  raw.once("close", leave);
  if (raw.destroyed) leave();
  const unfollow = followSignal(over, stream.endSignal);
  const pings = setInterval(() => ping(raw), times.pingMs);
  const intervalMs = times.authCheckMs;
  const stopAuthChecks = startAuthChecks({ server, endpoint, request, intervalMs, leave });
  try {
    await pump(raw, stream, over, times);
  } catch (error) {
    if (error !== CLIENT_GONE) server.ctx.log.warn({ request: request.id, err: error }, "a stream broke off");
  } finally {
    clearInterval(pings);
    stopAuthChecks();
    unfollow();
    leave();
    stream.onEnd();
    end(raw);
  }
}

/** Thrown because readEach stops only by an error. A client that disconnects is no fault, so it is not logged. */
const CLIENT_GONE = new Error("the client has disconnected or reads nothing");

function pump(
  raw: ServerResponse,
  stream: EventStreamResponse,
  over: AbortController,
  { stallMs }: StreamTimeouts,
): Promise<void> {
  return readEach(stream.events(over.signal), (event) => {
    if (over.signal.aborted) throw CLIENT_GONE;
    return raw.write(toText(event)) ? undefined : mustDrain(raw, over, stallMs);
  });
}

/** A pause of the process, in which it writes nothing, counts as one of these parts of the time to stall. */
const STALL_PARTS = 10;

/** The source learns of a stalled client before it is ended: a visitor's try counts then as used. */
export async function mustDrain(raw: EventEmitter, over: AbortController, stallMs: number): Promise<void> {
  let passed = 0;
  const timer = setInterval(() => {
    if (++passed === STALL_PARTS) over.abort();
  }, stallMs / STALL_PARTS);
  try {
    await once(raw, "drain", { signal: over.signal });
  } catch {
    over.abort();
    throw CLIENT_GONE;
  } finally {
    clearInterval(timer);
  }
}

const toText = ({ id, type, data }: StreamedEvent): string =>
  [
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(type === undefined ? [] : [`event: ${type}`]),
    ...(data === undefined ? [] : [`data: ${data}`]),
    "\n",
  ].join("\n");

/** Skipped while the client does not read: pings would pile up in memory. */
function ping(raw: ServerResponse): void {
  if (!raw.writableNeedDrain) raw.write(": ping\n\n");
}

/** A client that does not read would not receive the end either. */
function end(raw: ServerResponse): void {
  if (raw.writableNeedDrain) raw.destroy();
  else raw.end();
}
