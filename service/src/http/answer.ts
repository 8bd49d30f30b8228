import { type Endpoint, isRepeatable } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isMember } from "../context.ts";
import type { Page, Paging } from "../db/paging.ts";
import { ApiError, invalidRequest } from "../errors.ts";
import { inAuthorization } from "./authenticate.ts";
import { challengeOf } from "./challenge.ts";
import type { Door } from "./door.ts";
import { digest, type RawPage, renderError, renderFile, renderOne, renderPage } from "./envelope.ts";
import { type Outcome, runOnce } from "./idempotency.ts";
import { parseJsonBody } from "./json-body.ts";
import {
  letFinish,
  mustBeUpload,
  receiveUpload,
  type Upload,
  UploadSlots,
  uploadDeadlines,
} from "./multipart.ts";
import { entranceOf, isWrongCredential } from "./rate-limit.ts";
import { mediaTypeOf, mustBeTaken, type RawBody, RawBodyLines, readRawBody } from "./raw-body.ts";
import { docUrl, metaOf, toApiError } from "./refusal.ts";
import { pathOf, targetOf } from "./request-path.ts";
import { Answer, FileAnswer, type Route } from "./route.ts";
import { isFromPage } from "./same-origin.ts";
import { send } from "./send.ts";
import { sourceOf } from "./source.ts";
import { validate, validatePath } from "./validate.ts";

const MAX_IDEMPOTENCY_KEY = 255;
const slots = new UploadSlots();
const lines = new RawBodyLines();

/** Sends what the verb of a route answers to what came in. Of what may be large, an account has its share at once. */
export function answer(door: Door, route: Route, request: FastifyRequest, reply: FastifyReply) {
  const { upload, rawBody } = route.endpoint;
  const answerTo = (came: Buffer | Upload) => answerOnce(door, route, request, reply, came);
  if (rawBody)
    return lines.take(callerKey(request), async () => answerTo(await receiveRaw(door, rawBody, request)));
  if (upload) return slots.take(callerKey(request), () => answerUpload(door, route, request, answerTo));
  return answerTo(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
}

async function answerUpload(
  door: Door,
  route: Route,
  request: FastifyRequest,
  answerTo: (upload: Upload) => Promise<unknown>,
) {
  const upload = await receive(door, route, request);
  try {
    return await answerTo(upload);
  } finally {
    await upload.discard();
  }
}

/** Runs the verb, once for its Idempotency-Key. */
async function answerOnce(
  door: Door,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  came: Buffer | Upload,
) {
  const run = () => render(door, route, request, reply, came);
  const key = isRepeatable(route.endpoint) ? idempotencyKeyOf(request) : null;
  const outcome =
    key === null
      ? await run()
      : await runOnce(
          door.ctx,
          {
            caller: callerKey(request),
            route: routeKey(request),
            key,
            body: askedOf(route.endpoint, request, came),
          },
          run,
        );
  // Whoever hears that something changed must not meet what this process remembered of before.
  if (route.endpoint.method !== "GET") await door.ctx.notices.caughtUp();
  return send(request, reply, outcome);
}

/** Whether they may at all, is asked first; then the file comes to the disk. */
async function receive(door: Door, { endpoint, admit }: Route, request: FastifyRequest): Promise<Upload> {
  const { maxBytes } = endpoint.upload!;
  try {
    mustBeUpload(request.raw, maxBytes);
    await admit!(door.ctx, request.caller!, validatePath(endpoint, request.params) as never);
    const folder = await door.ctx.outside.storage.incoming();
    return await receiveUpload(request.raw, folder, maxBytes, deadlinesOf(door));
  } catch (error) {
    letFinish(request.raw);
    throw error;
  }
}

async function receiveRaw(
  door: Door,
  { maxBytes }: NonNullable<Endpoint["rawBody"]>,
  request: FastifyRequest,
): Promise<Buffer> {
  try {
    return await readRawBody(request.raw, maxBytes, deadlinesOf(door));
  } catch (error) {
    letFinish(request.raw);
    throw error;
  }
}

const deadlinesOf = (door: Door) => door.uploadDeadlines ?? uploadDeadlines;

/** What the schema of the body is held against: JSON, a file of its own, or the fields beside one. */
function bodyOf(
  { rawBody }: Endpoint,
  came: Buffer | Upload,
  contentType: string | undefined,
  raw: RawBody,
): unknown {
  if (!Buffer.isBuffer(came)) return came.fields;
  return rawBody ? mustBeTaken(rawBody, raw) : parseJsonBody(came, contentType);
}

/** What makes two uploads the same request: a repeat may draw another boundary. */
const asBytes = ({ file: { name, sha256, declaredType }, fields }: Upload) =>
  Buffer.from(JSON.stringify([fields, name, declaredType, sha256]));

const callerKey = ({ caller }: FastifyRequest) =>
  caller && isMember(caller) ? caller.userId : (caller?.guestId ?? "");

/** A digest, because a path may be longer than an index takes. */
const routeKey = (request: FastifyRequest) => digest(`POST ${pathOf(request)}`);

/** What a repeat must ask for too: another query is another request. */
function askedOf(endpoint: Endpoint, request: FastifyRequest, came: Buffer | Upload): Buffer {
  const bytes = Buffer.isBuffer(came) ? came : asBytes(came);
  const query = queryOf(endpoint, request);
  return Object.keys(query).length === 0 ? bytes : Buffer.concat([Buffer.from(JSON.stringify(query)), bytes]);
}

function idempotencyKeyOf(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x20-\x7e]+$/.test(key) && key.length <= MAX_IDEMPOTENCY_KEY) return key;
  throw invalidRequest("Idempotency-Key", `must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters`);
}

/** Parses, calls the verb and renders what it answers; an ApiError is an answer too. */
async function render(
  door: Door,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  came: Buffer | Upload,
): Promise<Outcome> {
  const { endpoint } = route;
  const meta = metaOf(door.ctx, request);
  const refusalOf = (error: ApiError) => {
    const challenge = challengeOf(door.ctx.links.origin(), error, request.caller);
    return renderError(error, docUrl(door.ctx, error.code), meta, challenge);
  };
  let outcome: Outcome;
  try {
    const contentType = request.headers["content-type"];
    const rawBody = {
      type: mediaTypeOf(contentType),
      bytes: Buffer.isBuffer(came) ? came : Buffer.alloc(0),
    };
    const body = bodyOf(endpoint, came, contentType, rawBody);
    const input = validate(endpoint, { params: request.params, query: queryOf(endpoint, request), body });
    const facts = {
      file: Buffer.isBuffer(came) ? null : came.file,
      ifMatch: request.headers["if-match"] ?? null,
      source: sourceOf(request),
      cookies: request.cookies,
      bearer: inAuthorization(request.headers.authorization),
      fromPage: isFromPage(request),
      isPrefetch: isPrefetch(request),
      rawBody,
      clientGone: () => goneSignal(request, reply),
    };
    const result = await route.handle(door.ctx, request.caller!, input as never, facts);
    if (result instanceof FileAnswer) outcome = renderFile(result);
    else
      outcome = endpoint.list
        ? renderPage(
            result as Page<unknown> | RawPage,
            input.query as unknown as Paging,
            targetOf(request),
            meta,
          )
        : renderOne(endpoint, result, meta);
    if (endpoint.showsSecret) outcome.repeat = refusalOf(madeAlready(result));
  } catch (error) {
    const known = await countIfWrong(door, request, toApiError(door, request, error));
    outcome = { ...refusalOf(known), error: known.code };
  }
  door.inspect?.(endpoint, outcome);
  return outcome;
}

/** As browsers say it now, and as they said it before there was a standard. */
const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  ["sec-purpose", "purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|preview/i.test(String(headers[name])),
  );

/** A wrong credential counts against its address, and is one too many at some point. */
async function countIfWrong({ limits }: Door, request: FastifyRequest, error: ApiError): Promise<ApiError> {
  if (!isWrongCredential(error)) return error;
  const entrance = entranceOf(request.routeOptions.config.endpoint?.base);
  return (await limits.countFailure(entrance, request.ip)) ?? error;
}

/** What a repeat hears in the place of a secret, which is kept nowhere. */
function madeAlready(result: unknown): ApiError {
  const { id } = (result instanceof Answer ? result.data : result) as { id?: string };
  return new ApiError(
    "CONFLICT",
    "This was done already, and its secret was shown then: it is not kept and cannot be shown again.",
    id === undefined ? undefined : { id },
  );
}

/** Every query below /v1 takes `api_key`, which the door has read already. */
function queryOf({ base }: Endpoint, request: FastifyRequest): Record<string, unknown> {
  const query = request.query as Record<string, unknown>;
  if (base !== "/v1") return query;
  const { api_key: _, ...rest } = query;
  return rest;
}

function goneSignal(request: FastifyRequest, reply: FastifyReply): AbortSignal | null {
  if (request.headers["idempotency-key"] !== undefined) return null;
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(new Error("the client went away"));
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort(new Error("the client went away"));
  });
  return gone.signal;
}
