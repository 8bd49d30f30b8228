import type { Endpoint, UploadRequest } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { callerIdOf } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { identifiedCallerOf } from "./authenticate-request.ts";
import { uploadDeadlines } from "./body-deadlines.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { parseJsonBody } from "./json-body.ts";
import { drainRequest, mustBeUpload, receiveUpload, type Upload } from "./multipart.ts";
import { mediaTypeOf, mustHaveAllowedType, type RawBody, RawBodyQueues, readRawBody } from "./raw-body.ts";
import type { Route } from "./route.ts";
import type { ServerDependencies } from "./server-dependencies.ts";
import { validatePath } from "./validate.ts";

export type RequestBody = Buffer | Upload;

export const isUpload = (body: RequestBody): body is Upload => !Buffer.isBuffer(body);

const NOTHING = Buffer.alloc(0);
/** Limits the unfinished files on the disk. */
const MAX_UPLOADS = 20;
const slots = new ConcurrencyLimit(MAX_UPLOADS, `${MAX_UPLOADS} uploads of yours are coming in already.`);
const lines = new RawBodyQueues();

type Work<T> = (body: RequestBody) => Promise<T>;

/** Reads the body and calls `work` with it. Large bodies count in a limit of the account until the work is done. */
export function withBody<T>(
  server: ServerDependencies,
  route: Route,
  request: FastifyRequest,
  work: Work<T>,
): Promise<T> {
  const declared = route.endpoint.request;
  switch (declared.kind) {
    case "none":
    case "json":
      return work(Buffer.isBuffer(request.body) ? request.body : NOTHING);
    case "raw":
      return drainOnError(
        request,
        lines.run(callerIdOf(identifiedCallerOf(request)), async () =>
          work(await readRawBody(request.raw, declared.maxBytes, deadlinesOf(server))),
        ),
      );
    case "upload":
      return drainOnError(
        request,
        slots.run(senderOf(request), () => withUpload(server, route, declared, request, work)),
      );
  }
}

/** A public endpoint identifies no caller. */
const senderOf = ({ caller, ip }: FastifyRequest) => (caller ? callerIdOf(caller) : ip);

async function drainOnError<T>(request: FastifyRequest, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } catch (error) {
    drainRequest(request.raw);
    throw error;
  }
}

async function withUpload<T>(
  server: ServerDependencies,
  route: Route,
  declared: UploadRequest,
  request: FastifyRequest,
  work: Work<T>,
): Promise<T> {
  const upload = await readUpload(server, route, declared, request);
  try {
    return await work(upload);
  } finally {
    await upload.discard();
  }
}

/** Checks permission before the file is written to the disk. */
async function readUpload(
  server: ServerDependencies,
  { endpoint, authorizeUpload }: Route,
  { maxBytes }: UploadRequest,
  request: FastifyRequest,
): Promise<Upload> {
  mustBeUpload(request.raw, maxBytes);
  const authorize = required(authorizeUpload, `authorizeUpload of ${endpoint.name}`);
  await authorize(server.ctx, request.caller, validatePath(endpoint, request.params) as never);
  const folder = await server.ctx.integrations.storage.incoming();
  return receiveUpload(request.raw, folder, maxBytes, deadlinesOf(server));
}

const deadlinesOf = (server: ServerDependencies) => ({
  ...uploadDeadlines,
  ...server.requestDeadlines?.upload,
});

/** The value for the schema of the body: JSON, or the fields of an upload; undefined for a raw file. */
export function parseBody(
  { request }: Endpoint,
  body: RequestBody,
  contentType: string | undefined,
): unknown {
  if (isUpload(body)) return body.fields;
  if (request.kind !== "raw") return parseJsonBody(body, contentType);
  mustHaveAllowedType(request, toRawBody(body, contentType));
  return undefined;
}

export const toRawBody = (body: RequestBody, contentType: string | undefined): RawBody => ({
  type: mediaTypeOf(contentType),
  bytes: isUpload(body) ? NOTHING : body,
});

/** The bytes by which an Idempotency-Key compares bodies: a repeated upload may have another boundary. */
export function comparableBytesOf(body: RequestBody): Buffer {
  if (!isUpload(body)) return body;
  const { file, fields } = body;
  return Buffer.from(JSON.stringify([fields, file.name, file.declaredType, file.sha256]));
}
