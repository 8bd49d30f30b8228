import type { Endpoint } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { callerIdOf } from "../../core/context.ts";
import { uploadDeadlines } from "./body-deadlines.ts";
import type { Door } from "./door.ts";
import { parseJsonBody } from "./json-body.ts";
import { letFinish, mustBeUpload, receiveUpload, type Upload } from "./multipart.ts";
import { mediaTypeOf, mustBeTaken, type RawBody, RawBodyLines, readRawBody } from "./raw-body.ts";
import type { Route } from "./route.ts";
import { Slots } from "./slots.ts";
import { validatePath } from "./validate.ts";

/** A body as it came in: bytes, or a file with fields beside it. */
export type Incoming = Buffer | Upload;

export const isUpload = (body: Incoming): body is Upload => !Buffer.isBuffer(body);

const NOTHING = Buffer.alloc(0);
/** What lies on the disk unfinished has a bound. */
const MAX_UPLOADS = 20;
const slots = new Slots(MAX_UPLOADS, `${MAX_UPLOADS} uploads of yours are coming in already.`);
const lines = new RawBodyLines();

type Work<T> = (body: Incoming) => Promise<T>;

/** Has what came in worked on. What may be large is read here, and an account has its share of that until the work is done. */
export function withBody<T>(door: Door, route: Route, request: FastifyRequest, work: Work<T>): Promise<T> {
  const { upload, rawBody } = route.endpoint;
  if (!upload && !rawBody) return work(Buffer.isBuffer(request.body) ? request.body : NOTHING);
  const who = callerIdOf(request.caller!);
  const done = rawBody
    ? lines.take(who, async () => work(await readRawBody(request.raw, rawBody.maxBytes, deadlinesOf(door))))
    : slots.take(who, () => withUpload(door, route, request, work));
  return done.catch((error) => {
    letFinish(request.raw);
    throw error;
  });
}

async function withUpload<T>(door: Door, route: Route, request: FastifyRequest, work: Work<T>): Promise<T> {
  const upload = await takeUpload(door, route, request);
  try {
    return await work(upload);
  } finally {
    await upload.discard();
  }
}

/** Whether they may at all, is asked first; then the file comes to the disk. */
async function takeUpload(door: Door, { endpoint, admit }: Route, request: FastifyRequest): Promise<Upload> {
  const { maxBytes } = endpoint.upload!;
  mustBeUpload(request.raw, maxBytes);
  await admit!(door.ctx, request.caller!, validatePath(endpoint, request.params) as never);
  const folder = await door.ctx.integrations.storage.incoming();
  return receiveUpload(request.raw, folder, maxBytes, deadlinesOf(door));
}

const deadlinesOf = (door: Door) => ({ ...uploadDeadlines, ...door.requestDeadlines?.upload });

/** What the schema of the body is held against: JSON, or the fields beside a file; of a file alone there is nothing. */
export function parseBody({ rawBody }: Endpoint, body: Incoming, contentType: string | undefined): unknown {
  if (isUpload(body)) return body.fields;
  if (!rawBody) return parseJsonBody(body, contentType);
  mustBeTaken(rawBody, toRawBody(body, contentType));
  return undefined;
}

export const toRawBody = (body: Incoming, contentType: string | undefined): RawBody => ({
  type: mediaTypeOf(contentType),
  bytes: isUpload(body) ? NOTHING : body,
});

/** What makes two bodies the same: a repeat of an upload may draw another boundary. */
export function identityOf(body: Incoming): Buffer {
  if (!isUpload(body)) return body;
  const { file, fields } = body;
  return Buffer.from(JSON.stringify([fields, file.name, file.declaredType, file.sha256]));
}
