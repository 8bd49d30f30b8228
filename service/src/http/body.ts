import type { Endpoint } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { viewerOf } from "../context.ts";
import type { Door } from "./door.ts";
import { parseJsonBody } from "./json-body.ts";
import { letFinish, mustBeUpload, receiveUpload, type Upload } from "./multipart.ts";
import { uploadDeadlines } from "./patience.ts";
import { mediaTypeOf, mustBeTaken, type RawBody } from "./raw-body.ts";
import type { Route } from "./route.ts";
import { UploadSlots } from "./upload-slots.ts";
import { validatePath } from "./validate.ts";

/** A body as it came in: bytes, or a file with fields beside it. */
export type Incoming = Buffer | Upload;

export const isUpload = (body: Incoming): body is Upload => !Buffer.isBuffer(body);

const NOTHING = Buffer.alloc(0);
const slots = new UploadSlots();

/** Fastify has read every body but that of an upload. */
export async function takeBody(door: Door, route: Route, request: FastifyRequest): Promise<Incoming> {
  if (route.endpoint.upload) return takeUpload(door, route, request);
  return Buffer.isBuffer(request.body) ? request.body : NOTHING;
}

/** Whether they may at all, is asked first; then the file comes to the disk. */
async function takeUpload(door: Door, { endpoint, admit }: Route, request: FastifyRequest): Promise<Upload> {
  const { maxBytes } = endpoint.upload!;
  const caller = request.caller!;
  try {
    mustBeUpload(request.raw, maxBytes);
    await admit!(door.ctx, caller, validatePath(endpoint, request.params) as never);
    const folder = await door.ctx.outside.storage.incoming();
    return await slots.take(viewerOf(caller), () =>
      receiveUpload(request.raw, folder, maxBytes, door.uploadDeadlines ?? uploadDeadlines),
    );
  } catch (error) {
    letFinish(request.raw);
    throw error;
  }
}

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
