import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Endpoint } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";
import { authenticate, mustBeAllowed } from "./authenticate.ts";
import { credentialsOf } from "./request-credentials.ts";
import type { EventStreamResponse, StreamedEvent } from "./route.ts";
import type { ServerDependencies } from "./server-dependencies.ts";

/** All in milliseconds, by the clock of the process. */
export const streamTimeouts = {
  /** How often a reader hears that the stream is alive. */
  pingMs: 15_000,
  /** How often it is asked whether the reader may still read: a stream ends within a second of its credential. */
  authCheckMs: 500,
  /** How long a reader may take nothing of what waits for it. */
  stallMs: 30_000,
};
export type StreamTimeouts = typeof streamTimeouts;

/** When a client that lost its stream comes back by itself. */
const RECONNECT_MS = 2_000;

/**
 * Sends a stream until it ends: its source does, its reader goes or stands still, or the credential that opened it is worth
 * nothing any more. Nothing is asked of the source while the reader has not taken what was sent.
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
  void run(server, request, reply.raw, stream, () => isStillAuthorized(server, endpoint, request)).finally(
    () =>
      // Of a reader who went nobody else says so.
      server.ctx.log.info({ request: request.id, route: endpoint.path }, "a stream is over"),
  );
  return reply;
}

async function run(
  server: ServerDependencies,
  request: FastifyRequest,
  raw: ServerResponse,
  stream: EventStreamResponse,
  mayRead: () => Promise<boolean>,
): Promise<void> {
  const times = { ...streamTimeouts, ...server.streamTimeouts };
  const gone = new AbortController();
  const leave = () => gone.abort();
  raw.once("close", leave);
  if (raw.destroyed) leave();
  const over = AbortSignal.any([gone.signal, stream.endSignal]);
  const pings = setInterval(() => ping(raw), times.pingMs);
  void untilUnauthorized(mayRead, times.authCheckMs, over).then(leave);
  try {
    await pump(raw, stream, over, times);
  } catch (error) {
    server.ctx.log.warn({ request: request.id, err: error }, "a stream broke off");
  } finally {
    clearInterval(pings);
    leave();
    stream.onEnd();
    end(raw);
  }
}

async function pump(
  raw: ServerResponse,
  stream: EventStreamResponse,
  over: AbortSignal,
  { stallMs }: StreamTimeouts,
): Promise<void> {
  for await (const event of stream.events(over)) {
    if (over.aborted) return;
    if (!raw.write(toText(event)) && !(await isDrained(raw, over, stallMs))) return;
  }
}

const isDrained = (raw: ServerResponse, over: AbortSignal, stallMs: number): Promise<boolean> =>
  once(raw, "drain", { signal: AbortSignal.any([over, AbortSignal.timeout(stallMs)]) }).then(
    () => true,
    () => false,
  );

const toText = ({ id, type, data }: StreamedEvent): string =>
  [
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(type === undefined ? [] : [`event: ${type}`]),
    ...(data === undefined ? [] : [`data: ${data}`]),
    "\n",
  ].join("\n");

/** One question at a time: a slow database is not asked more for it. */
async function untilUnauthorized(
  ask: () => Promise<boolean>,
  everyMs: number,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    await sleep(everyMs, null, { signal: over }).catch(() => {});
    if (!over.aborted && !(await ask())) return;
  }
}

/** To whoever does not read, it would only pile up. */
function ping(raw: ServerResponse): void {
  if (!raw.writableNeedDrain) raw.write(": ping\n\n");
}

/** Who does not read would not hear of an end either. */
function end(raw: ServerResponse): void {
  if (raw.writableNeedDrain) raw.destroy();
  else raw.end();
}

/** Whether the same request would be let in now. While the database is away nobody's key is revoked. */
async function isStillAuthorized(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
): Promise<boolean> {
  if (endpoint.access.who === "public") return true;
  try {
    const presented = credentialsOf(request, server.ctx.links.origin());
    mustBeAllowed(await authenticate(server.identify, presented), endpoint.access);
    return true;
  } catch (error) {
    return !(error instanceof ApiError);
  }
}
