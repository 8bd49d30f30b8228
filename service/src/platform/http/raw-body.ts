import type { IncomingMessage } from "node:http";
import type { RawRequest } from "@stoa/contract";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { firstOf } from "../../core/required.ts";
import { type BodyDeadlines, UploadTimeout } from "./body-deadlines.ts";
import { rejectOnDisconnect } from "./multipart.ts";

export interface RawBody {
  type: string;
  bytes: Buffer;
}

/** Without parameters. */
export const mediaTypeOf = (contentType: string | undefined): string =>
  firstOf((contentType ?? "").split(";"))
    .trim()
    .toLowerCase();

export function mustHaveAllowedType({ types }: RawRequest, { type, bytes }: RawBody): void {
  if (bytes.length === 0) throw invalidRequest("body", "is required");
  if (!types.includes(type))
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", `This endpoint accepts ${types.join(", ")}.`);
}

/** Bounds the memory of an account: two bodies at a time, each processed before the next is read. */
const MAX_AT_ONCE = 2;
const MAX_WAITING = 20;

interface BodyQueue {
  running: number;
  waiting: (() => void)[];
}

/** A queue for each account. A waiting body is not read and takes no memory. */
export class RawBodyQueues {
  readonly #lines = new Map<string, BodyQueue>();

  async run<T>(who: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(who) ?? { running: 0, waiting: [] };
    this.#lines.set(who, line);
    if (line.running < MAX_AT_ONCE) line.running++;
    else if (line.waiting.length < MAX_WAITING) await new Promise<void>((go) => line.waiting.push(go));
    else {
      const why = `${MAX_AT_ONCE + MAX_WAITING} requests of yours are being worked on here already.`;
      throw new ApiError("RATE_LIMIT_EXCEEDED", why, undefined, 1);
    }
    try {
      return await work();
    } finally {
      const next = line.waiting.shift();
      if (next) next();
      else if (--line.running === 0) this.#lines.delete(who);
    }
  }
}

const tooLarge = (maxBytes: number) =>
  new ApiError("PAYLOAD_TOO_LARGE", `The request body is larger than ${maxBytes} bytes.`);

/** Reads the body into memory, within its limits of size and time. */
export async function readRawBody(
  request: IncomingMessage,
  maxBytes: number,
  deadlines: BodyDeadlines,
): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const timeout = new UploadTimeout(deadlines);
  try {
    const stream = request.pipe(timeout.stream);
    return await Promise.race([collect(stream, maxBytes), timeout.late, rejectOnDisconnect(request)]);
  } finally {
    request.unpipe(timeout.stream);
    timeout.stream.destroy();
    timeout.end();
  }
}

async function collect(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
