import type { OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { required } from "../../core/required.ts";

/** A request as the library takes it; its body is parsed already. */
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

/** What the library answers: a document, or a stream that goes out as it comes. */
export async function sendWebResponse(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  // Whether the connection stays is for our own server to say.
  for (const [name, value] of response.headers) if (name !== "connection") reply.header(name, value);
  reply.code(response.status);
  const isStream = response.headers.get("content-type") === "text/event-stream";
  return isStream
    ? sendStream(reply, required(response.body, "the body of a stream"))
    : reply.send(await response.text());
}

/** The head goes out at once: the first words may be a minute away. */
async function sendStream(reply: FastifyReply, body: ReadableStream<Uint8Array>): Promise<FastifyReply> {
  reply.hijack();
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders);
  reply.raw.flushHeaders();
  // Who hung up is not waited for; the library has heard of it by the signal.
  await pipeline(body, reply.raw).catch(() => {});
  return reply;
}
