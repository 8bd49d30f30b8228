import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Busboy, type BusboyHeaders, type BusboyInstance } from "@fastify/busboy";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { type BodyDeadlines, UploadTimeout } from "./body-deadlines.ts";
import { mustBeStorable } from "./json-body.ts";

/** A received file. It has a random name in our folder, until the response is sent. */
export interface UploadedFile {
  path: string;
  /** The client's name for it, unchecked. */
  name: string;
  /** The client's media type, unchecked. */
  declaredType: string | null;
  size: number;
  sha256: string;
}

export interface Upload {
  file: UploadedFile;
  fields: Record<string, string>;
  /** Deletes the file, unless it was moved. */
  discard(): Promise<void>;
}

/** Room for boundaries, headers and text fields. */
const FORM_OVERHEAD_BYTES = 128 * 1024;
const LIMITS = { files: 2, fields: 20, parts: 22, fieldNameSize: 100, fieldSize: 64 * 1024, headerPairs: 20 };
const MIB = 1024 * 1024;
const DRAIN_MS = 2_000;

const tooLarge = (maxBytes: number) =>
  new ApiError("PAYLOAD_TOO_LARGE", `A file may have ${maxBytes / MIB} MiB here.`, {
    field: "file",
    limitBytes: maxBytes,
  });
const isMultipart = (contentType: string | undefined) => /^multipart\/form-data\s*;/i.test(contentType ?? "");

/** Checks the headers before the body is read. */
export function mustBeUpload({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > maxBytes + FORM_OVERHEAD_BYTES) throw tooLarge(maxBytes);
  if (isMultipart(headers["content-type"])) return;
  throw new ApiError(
    "UNSUPPORTED_MEDIA_TYPE",
    "The body must be multipart/form-data with a part named file.",
  );
}

/** Writes the file to disk while it arrives. */
export async function receiveUpload(
  request: IncomingMessage,
  folder: string,
  maxBytes: number,
  deadlines: BodyDeadlines,
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
  deadlines: BodyDeadlines,
): Promise<Omit<Upload, "discard">> {
  const parser = parserOf(request);
  const parts = collect(parser, path, maxBytes);
  const timeout = new UploadTimeout(deadlines);
  const read = async () => {
    await pipeline(request.pipe(timeout.stream), limitBytes(maxBytes), parser);
    if (parts.file === null) throw invalidRequest("file", "is required");
    return parts.file;
  };
  try {
    const file = await Promise.race([read(), parts.failed, timeout.late, rejectOnDisconnect(request)]);
    mustBeStorable(parts.fields, "body");
    return { file, fields: { ...parts.fields } };
  } catch (error) {
    // Destroying the request would close the connection before the response.
    request.unpipe(timeout.stream);
    for (const stream of [timeout.stream, parser]) stream.destroy();
    parts.end.abort();
    await parts.file?.catch(() => {});
    throw toUploadError(error);
  } finally {
    timeout.end();
  }
}

interface Parts {
  file: Promise<UploadedFile> | null;
  fields: Record<string, string>;
  /** Never resolves. */
  failed: Promise<never>;
  /** The parser leaves its current file open. */
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
    const declared = { name: fileName ?? "", declaredType: type || null };
    parts.file = storeFile(stream, path, { ...declared, maxBytes, signal: parts.end.signal });
    parts.file.catch(reject);
  });
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const)
    parser.on(limit, () => reject(invalidRequest("body", "has too many parts")));
  return parts;
}

/** Never resolves. */
export const rejectOnDisconnect = (request: IncomingMessage) =>
  new Promise<never>((_, reject) => {
    request.once(
      "close",
      () => request.complete || reject(invalidRequest("body", "ended before it was whole")),
    );
    request.once("error", reject);
  });

/** Reads and drops the rest for a moment, so that a client that is still sending gets the refusal and no broken connection. */
export function drainRequest(request: IncomingMessage): void {
  if (request.complete) return;
  const end = setTimeout(() => request.socket.destroy(), DRAIN_MS);
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

async function storeFile(
  stream: Readable,
  path: string,
  {
    maxBytes,
    signal,
    ...declared
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
  return { ...declared, path, size, sha256: hash.digest("hex") };
}

/** Counts all bytes: a chunked request could have no end. */
function limitBytes(maxBytes: number): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      done(size > maxBytes + FORM_OVERHEAD_BYTES ? tooLarge(maxBytes) : null, chunk);
    },
  });
}

/** The parser's messages stay internal; errors of the disk are ours. */
function toUploadError(error: unknown): unknown {
  const isSystems = (error as NodeJS.ErrnoException).syscall !== undefined;
  return error instanceof ApiError || isSystems
    ? error
    : invalidRequest("body", "is no whole multipart/form-data");
}
