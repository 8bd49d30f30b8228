import type { OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { required } from "../../core/required.ts";

/** Converts a request for the library. Its body is already parsed. */
export function toWebRequest(
  { method, url, headers }: FastifyRequest,
  origin: string,
  signal: AbortSignal,
): Request {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) all.append(name, each);
  return new Request(new URL(url, origin), { method, headers: all, signal });
}

/** Sends the library's response: a document, or a stream. */
export async function sendWebResponse(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  // Our own server decides whether the connection stays open.
  for (const [name, value] of response.headers) if (name !== "connection") reply.header(name, value);
  reply.code(response.status);
  const isStream = response.headers.get("content-type") === "text/event-stream";
  return isStream
    ? sendStream(reply, required(response.body, "the body of a stream"))
    : reply.send(await response.text());
}

/** Sends the headers at once, because the first event may take a minute. */
async function sendStream(reply: FastifyReply, body: ReadableStream<Uint8Array>): Promise<FastifyReply> {
  reply.hijack();
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders);
  reply.raw.flushHeaders();
  // A disconnected client is not an error; the library gets the signal.
  await pipeline(body, reply.raw).catch(() => {});
  return reply;
}
