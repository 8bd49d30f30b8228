import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Busboy, type BusboyHeaders, type BusboyInstance } from "@fastify/busboy";
import { ApiError, invalidRequest } from "../errors.ts";
import { mustBeStorable } from "./json-body.ts";

/** A file as it came in. It lies in a folder of ours under a name of ours, until the request is answered. */
export interface UploadedFile {
  path: string;
  /** As the client says, in whatever characters. */
  name: string;
  /** The media type that the client says; null: none. */
  declaredType: string | null;
  size: number;
  sha256: string;
}

export interface Upload {
  file: UploadedFile;
  fields: Record<string, string>;
  /** Removes the file where nobody moved it away. */
  discard(): Promise<void>;
}

export interface UploadDeadlines {
  /** Without a byte. */
  idleMs: number;
  /** From the first byte to the last. */
  totalMs: number;
}

export const uploadDeadlines: UploadDeadlines = { idleMs: 20_000, totalMs: 600_000 };

/** What stands around a file: boundaries, headers and text fields. */
const AROUND_BYTES = 128 * 1024;
const LIMITS = { files: 2, fields: 20, parts: 22, fieldNameSize: 100, fieldSize: 64 * 1024, headerPairs: 20 };
const MIB = 1024 * 1024;
const LETTING_FINISH_MS = 2_000;

/** So many come in at the same time from one account, in one process: what lies on the disk unfinished has a bound. */
const MAX_AT_ONCE = 20;

/** Who sends how many uploads at this moment. */
export class UploadSlots {
  readonly #taken = new Map<string, number>();

  async take<T>(who: string, work: () => Promise<T>): Promise<T> {
    const taken = this.#taken.get(who) ?? 0;
    if (taken >= MAX_AT_ONCE) {
      const why = `${MAX_AT_ONCE} uploads of yours are coming in already.`;
      throw new ApiError("RATE_LIMIT_EXCEEDED", why, undefined, 1);
    }
    this.#taken.set(who, taken + 1);
    try {
      return await work();
    } finally {
      const left = this.#taken.get(who)! - 1;
      if (left === 0) this.#taken.delete(who);
      else this.#taken.set(who, left);
    }
  }
}

const tooLarge = (maxBytes: number) =>
  new ApiError("PAYLOAD_TOO_LARGE", `A file may have ${maxBytes / MIB} MiB here.`, {
    field: "file",
    limitBytes: maxBytes,
  });
const isMultipart = (contentType: string | undefined) => /^multipart\/form-data\s*;/i.test(contentType ?? "");

/** What the headers tell already, before a byte of the body is read. */
export function mustBeUpload({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > maxBytes + AROUND_BYTES) throw tooLarge(maxBytes);
  if (isMultipart(headers["content-type"])) return;
  throw new ApiError(
    "UNSUPPORTED_MEDIA_TYPE",
    "The body must be multipart/form-data with a part named file.",
  );
}

/** Reads one file, and the text fields around it, without ever holding it in memory. */
export async function receiveUpload(
  request: IncomingMessage,
  folder: string,
  maxBytes: number,
  deadlines: UploadDeadlines,
): Promise<Upload> {
  const path = join(folder, randomUUID());
  const discard = () => rm(path, { force: true });
  try {
    return { ...(await readParts(request, path, maxBytes, deadlines)), discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

async function readParts(
  request: IncomingMessage,
  path: string,
  maxBytes: number,
  deadlines: UploadDeadlines,
): Promise<Omit<Upload, "discard">> {
  const parser = parserOf(request);
  const parts = collect(parser, path, maxBytes);
  const patience = new Patience(deadlines);
  const read = async () => {
    await pipeline(request.pipe(patience.stream), bounded(maxBytes), parser);
    if (parts.file === null) throw invalidRequest("file", "is required");
    return parts.file;
  };
  try {
    const file = await Promise.race([read(), parts.failed, patience.lost, cut(request)]);
    mustBeStorable(parts.fields, "body");
    return { file, fields: { ...parts.fields } };
  } catch (error) {
    // Not the request itself: that would end the connection before it has its answer.
    request.unpipe(patience.stream);
    for (const stream of [patience.stream, parser]) stream.destroy();
    parts.end.abort();
    await parts.file?.catch(() => {});
    throw inOurWords(error);
  } finally {
    patience.end();
  }
}

interface Parts {
  file: Promise<UploadedFile> | null;
  fields: Record<string, string>;
  /** Never resolves. */
  failed: Promise<never>;
  /** The parser does not end the file that it was in. */
  end: AbortController;
}

function collect(parser: BusboyInstance, path: string, maxBytes: number): Parts {
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {});
  const parts: Parts = {
    file: null,
    fields: Object.create(null),
    failed,
    end: new AbortController(),
  };
  parser.on("field", (name, value, nameCut, valueCut) => {
    if (nameCut || valueCut) reject(invalidRequest(name, "is too long"));
    else parts.fields[name] = value;
  });
  parser.on("file", (name, stream, fileName, _encoding, type) => {
    if (name !== "file" || parts.file !== null) {
      stream.on("error", () => {}).resume();
      reject(invalidRequest(name, name === "file" ? "is sent twice" : "is not known here"));
      return;
    }
    const said = { name: fileName ?? "", declaredType: type || null };
    parts.file = keep(stream, path, { ...said, maxBytes, signal: parts.end.signal });
    parts.file.catch(reject);
  });
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const)
    parser.on(limit, () => reject(invalidRequest("body", "has too many parts")));
  return parts;
}

/** The client hung up. Never resolves. */
export const cut = (request: IncomingMessage) =>
  new Promise<never>((_, reject) => {
    request.once(
      "close",
      () => request.complete || reject(invalidRequest("body", "ended before it was whole")),
    );
    request.once("error", reject);
  });

/**
 * A client that is refused while it still sends shall find its answer, and not a dead connection: the rest is read past,
 * for a moment.
 */
export function letFinish(request: IncomingMessage): void {
  if (request.complete) return;
  const end = setTimeout(() => request.socket.destroy(), LETTING_FINISH_MS);
  end.unref();
  request.once("close", () => clearTimeout(end));
  request.resume();
}

function parserOf({ headers }: IncomingMessage): BusboyInstance {
  try {
    return new Busboy({ headers: headers as BusboyHeaders, limits: LIMITS });
  } catch {
    throw invalidRequest("body", "is not multipart/form-data with a boundary");
  }
}

/** Hashed on its way to the disk. */
async function keep(
  stream: Readable,
  path: string,
  {
    maxBytes,
    signal,
    ...said
  }: Pick<UploadedFile, "name" | "declaredType"> & {
    maxBytes: number;
    signal: AbortSignal;
  },
): Promise<UploadedFile> {
  const hash = createHash("sha256");
  let size = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      hash.update(chunk);
      done(size > maxBytes ? tooLarge(maxBytes) : null, chunk);
    },
  });
  await pipeline(stream, count, createWriteStream(path, { flags: "wx", mode: 0o600 }), { signal });
  return { ...said, path, size, sha256: hash.digest("hex") };
}

/**
 * A client may be slow, but not for ever, and not silent. Nor may what it sent keep the parser waiting: of a part behind
 * the last one it tells that it begins, and never that it ends.
 */
export class Patience {
  /** Never resolves. */
  readonly lost: Promise<never>;
  readonly stream: Transform;
  readonly #total: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout;

  constructor({ idleMs, totalMs }: UploadDeadlines) {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.lost = promise;
    const lose = (why: string) => () => reject(invalidRequest("body", why));
    this.#total = setTimeout(lose(`took longer than ${totalMs / 1000} seconds`), totalMs);
    this.#idle = setTimeout(lose(`stood still for ${idleMs / 1000} seconds`), idleMs);
    this.stream = new Transform({
      transform: (chunk, _encoding, done) => {
        this.#idle.refresh();
        done(null, chunk);
      },
    });
  }

  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#idle);
  }
}

/** Also what belongs to no file: a client that says no Content-Length shall not send for ever. */
function bounded(maxBytes: number): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      done(size > maxBytes + AROUND_BYTES ? tooLarge(maxBytes) : null, chunk);
    },
  });
}

/** The parser's words are for nobody; what the disk says is our own trouble. */
function inOurWords(error: unknown): unknown {
  const isSystems = (error as NodeJS.ErrnoException).syscall !== undefined;
  return error instanceof ApiError || isSystems
    ? error
    : invalidRequest("body", "is no whole multipart/form-data");
}
