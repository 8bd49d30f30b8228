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
/** What fails is told by us, once. */
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Keeps bytes in a bucket of whatever speaks the protocol of S3. */
export function createS3Storage(place: S3Location): Storage {
  const client = clientOf(place);
  const at = (name: string) => {
    digestIn(name);
    return { Bucket: place.bucket, Key: place.prefix + name };
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
        // What was refused before all of it was read would stay open.
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
      await withStorageErrors(client.send(new HeadBucketCommand({ Bucket: place.bucket })));
      return `files are stored in the bucket ${place.bucket} at ${place.endpoint}`;
    },
    async close() {
      client.destroy();
      await folder.remove();
    },
  };
}

/** Where uploads wait on this machine's disk until the bucket has them. */
function createIncomingFolder() {
  const removeLeftovers = staleUploadRemover(tmpdir(), (name) => name.startsWith(INCOMING));
  const make = () => mkdtemp(join(tmpdir(), INCOMING));
  let folder: Promise<string> | null = null;
  return {
    async open(): Promise<string> {
      await removeLeftovers();
      // A job that tidies temporary files may delete a folder that was not used for long.
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
    // The bucket in the path: what every server understands.
    forcePathStyle: true,
    maxAttempts: ATTEMPTS,
    logger: SILENT,
    // Newer checksums than the digest below are not known everywhere.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      httpsAgent: { maxSockets: MAX_CONNECTIONS },
      httpAgent: { maxSockets: MAX_CONNECTIONS },
    },
  });

/** Says the SHA-256 of the body, which is signed with the rest: the server refuses bytes that came to harm. */
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

/** What a server says may quote the key that it was asked with: its code and status are enough. */
function withStorageErrors<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: Partial<S3ServiceException> & { code?: string }) => {
    const what = [error.code ?? error.name, error.$metadata?.httpStatusCode].filter(Boolean);
    throw new StorageUnavailable(`the storage failed: ${what.join(" ")}`);
  });
}
