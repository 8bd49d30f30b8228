import { Transform } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { invalidRequest } from "../../core/errors.ts";

export interface BodyDeadlines {
  /** In each window of this length at least `bytesPerSecond` must arrive on average. */
  idleMs: number;
  /** From the first byte to the last. */
  totalMs: number;
  bytesPerSecond: number;
}

/** For bodies up to 1 MiB, which are read into memory. */
export const bodyDeadlines: BodyDeadlines = { idleMs: 10_000, totalMs: 30_000, bytesPerSecond: 100 };
/** For files and imports. */
export const uploadDeadlines: BodyDeadlines = { idleMs: 20_000, totalMs: 600_000, bytesPerSecond: 1_024 };

const inSeconds = (ms: number) => `${ms / 1000} seconds`;

/** Calls `onLate` when bytes arrive too slowly. Returns the function that stops the watch. */
function watch(
  { idleMs, totalMs, bytesPerSecond }: BodyDeadlines,
  bytesRead: () => number,
  onLate: (reason: string) => void,
): () => void {
  const startedAt = performance.now();
  let readBefore = bytesRead();
  const check = () => {
    const read = bytesRead() - readBefore;
    readBefore += read;
    if (performance.now() - startedAt >= totalMs)
      onLate(`took longer than ${inSeconds(totalMs)}: send less at once, or faster`);
    else if (read === 0) onLate(`stood still for ${inSeconds(idleMs)}: send all of it without a pause`);
    else if (read * 1000 < bytesPerSecond * idleMs)
      onLate(`arrived at less than ${bytesPerSecond} bytes a second: send it faster`);
  };
  let checking: NodeJS.Immediate | undefined;
  // The event loop reads sockets after its timers: bytes that arrived while it was busy count.
  const timer = setInterval(
    () => {
      checking = setImmediate(check);
    },
    Math.min(idleMs, totalMs),
  );
  return () => {
    clearInterval(timer);
    clearImmediate(checking);
  };
}

const hasBody = ({ headers }: FastifyRequest) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Refuses a request whose body is late and closes its connection, also when it was answered before its body was read. An
 * upload waits in a queue before it is read and has its own deadline: `UploadTimeout`.
 */
export function limitBodyTime(
  deadlines: BodyDeadlines,
  request: FastifyRequest,
  reply: FastifyReply,
  refuse: (reason: string) => void,
): void {
  if (!hasBody(request)) return;
  const { raw } = request;
  const end = watch(
    deadlines,
    () => raw.socket.bytesRead,
    (reason) => {
      // Received bytes that wait to be read are not late.
      if (raw.readableLength > 0 && !reply.sent) return;
      end();
      if (reply.sent) return void raw.destroy();
      // Closes the connection after the response.
      reply.header("connection", "close");
      refuse(reason);
    },
  );
  raw.once("close", end);
}

/**
 * Counts the bytes that reach the parser, since received bytes may also leave the parser waiting: for a part after the
 * closing boundary, it reports the start and never the end.
 */
export class UploadTimeout {
  /** Never resolves. */
  readonly late: Promise<never>;
  readonly stream: Transform;
  readonly end: () => void;

  constructor(deadlines: BodyDeadlines) {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.late = promise;
    let bytesRead = 0;
    this.stream = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        bytesRead += chunk.length;
        done(null, chunk);
      },
    });
    this.end = watch(
      deadlines,
      () => bytesRead,
      (reason) => reject(invalidRequest("body", reason)),
    );
  }
}
