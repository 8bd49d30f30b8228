import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import type { S3Location } from "../../core/config/s3-url.ts";
import { staleUploadRemover } from "./stale-uploads.ts";
import { digestIn, type Storage, StorageUnavailable } from "./storage.ts";

const CONNECT_MS = 5_000;
/** Without a byte; a whole file may take longer. */
const SILENCE_MS = 30_000;
const ATTEMPTS = 3;
const MAX_CONNECTIONS = 50;
const INCOMING = "stoa-incoming-";
/** The SDK must not log: we report errors. */
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Stores bytes in a bucket of any S3-compatible server. */
export function createS3Storage(location: S3Location): Storage {
  const client = clientOf(location);
  const at = (name: string) => {
    digestIn(name);
    return { Bucket: location.bucket, Key: location.prefix + name };
  };
  const folder = createIncomingFolder();
  return {
    incoming: () => folder.open(),
    async put(name, source) {
      const object = at(name);
      const isBytes = Buffer.isBuffer(source);
      const size = isBytes ? source.length : (await stat(source.path)).size;
      const body = isBytes ? source : createReadStream(source.path);
      const put = putWithDigest({ ...object, Body: body, ContentLength: size }, digestIn(name));
      try {
        await withStorageErrors(client.send(put));
      } finally {
        // A refused upload leaves the file open.
        if (body instanceof Readable) body.destroy();
      }
    },
    async has(name) {
      return (await nullIfMissing(client.send(new HeadObjectCommand(at(name))))) !== null;
    },
    async get(name, range) {
      const part = range && { Range: `bytes=${range.start}-${range.end}` };
      const answer = await nullIfMissing(client.send(new GetObjectCommand({ ...at(name), ...part })));
      return (answer?.Body as Readable | undefined) ?? null;
    },
    async remove(name) {
      await withStorageErrors(client.send(new DeleteObjectCommand(at(name))));
    },
    async check() {
      await withStorageErrors(client.send(new HeadBucketCommand({ Bucket: location.bucket })));
      return `files are stored in the bucket ${location.bucket} at ${location.endpoint}`;
    },
    async close() {
      client.destroy();
      await folder.remove();
    },
  };
}

/** The folder on this machine for uploads that are not in the bucket yet. */
function createIncomingFolder() {
  const removeLeftovers = staleUploadRemover(tmpdir(), (name) => name.startsWith(INCOMING));
  const make = () => mkdtemp(join(tmpdir(), INCOMING));
  let folder: Promise<string> | null = null;
  return {
    async open(): Promise<string> {
      await removeLeftovers();
      // A job that cleans temporary files may delete an unused folder.
      folder = folder === null ? make() : folder.then(touch).catch(make);
      return folder;
    },
    async remove(): Promise<void> {
      if (folder) await rm(await folder, { recursive: true, force: true });
    },
  };
}

async function touch(folder: string): Promise<string> {
  await utimes(folder, new Date(), new Date());
  return folder;
}

const clientOf = ({ endpoint, region, credentials }: S3Location) =>
  new S3Client({
    endpoint,
    region,
    ...(credentials && { credentials }),
    // Path style, which every server supports.
    forcePathStyle: true,
    maxAttempts: ATTEMPTS,
    logger: SILENT,
    // Not every server supports newer checksums than the digest below.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      httpsAgent: { maxSockets: MAX_CONNECTIONS },
      httpAgent: { maxSockets: MAX_CONNECTIONS },
    },
  });

/** Signs the SHA-256 of the body, so that the server refuses damaged bytes. */
function putWithDigest(input: PutObjectCommand["input"], sha256: string): PutObjectCommand {
  const command = new PutObjectCommand(input);
  command.middlewareStack.add(
    (next) => (args) => {
      (args.request as { headers: Record<string, string> }).headers["x-amz-content-sha256"] = sha256;
      return next(args);
    },
    { step: "build", name: "digestOfBody" },
  );
  return command;
}

async function nullIfMissing<T>(answer: Promise<T>): Promise<T | null> {
  const isMissing = (error: unknown) =>
    error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404;
  return withStorageErrors(answer.catch((error) => (isMissing(error) ? null : Promise.reject(error))));
}

/** The server's text may quote the access key, so only its code and status are reported. */
function withStorageErrors<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: Partial<S3ServiceException> & { code?: string }) => {
    const what = [error.code ?? error.name, error.$metadata?.httpStatusCode].filter(Boolean);
    throw new StorageUnavailable(`the storage failed: ${what.join(" ")}`);
  });
}
