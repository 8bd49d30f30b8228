import { type Endpoint, isRepeatable, type Meta } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Context, callerIdOf } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import type { Page, Paging } from "../db/paging.ts";
import { comparableBytesOf, parseBody, type RequestBody, withBody } from "./body.ts";
import {
  type RawPage,
  type RenderedResponse,
  renderAccepted,
  renderData,
  renderFile,
  renderPage,
  renderStream,
  renderWithoutEnvelope,
  shortDigest,
} from "./envelope.ts";
import { metaOf, renderErrorResponse, toApiError } from "./error-response.ts";
import { sendEventStream } from "./event-stream.ts";
import {
  type IdempotentActions,
  type IdempotentRequest,
  type IdempotentResponse,
  runOnce,
} from "./idempotency.ts";
import { noRetryHeaders } from "./openai-error.ts";
import { authChannelOf, isWrongCredential } from "./rate-limit.ts";
import { requestInfoOf } from "./request-info.ts";
import { isOpenAi, pathOf, targetOf } from "./request-path.ts";
import {
  AcceptedResponse,
  DataResponse,
  EventStreamResponse,
  type FileResponse,
  type Route,
} from "./route.ts";
import { sendResponse } from "./send-response.ts";
import { catchUpNode, type ServerDependencies } from "./server-dependencies.ts";
import { validate } from "./validate.ts";

const MAX_IDEMPOTENCY_KEY = 255;

/** Runs the handler of a route, once for its Idempotency-Key, and sends its response. */
export function handleRequest(
  server: ServerDependencies,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  return withBody(server, route, request, async (body) => {
    const exchange = { server, route, request, reply, body };
    const repeatable = repeatableOf(route.endpoint, request, body);
    const first = repeatable
      ? withRetryHeaders(request, await runOnce(server.ctx, repeatable, actionsOf(exchange)))
      : await runWith(exchange)(server.ctx);
    const outcome = await withStream(server, route, request, first);
    // After the response no cache of this node may answer with the state before the change.
    if (changesCache(route, request)) await catchUpNode(server);
    if (outcome.stream && request.method === "HEAD") outcome.stream.onEnd();
    else if (outcome.stream)
      return sendEventStream(server, route.endpoint, request, reply.headers(outcome.headers), outcome.stream);
    return sendResponse(request, reply, outcome);
  });
}

const changesCache = ({ endpoint, changesCache: changes }: Route, { caller }: FastifyRequest): boolean =>
  endpoint.method !== "GET" && (changes?.(caller) ?? true);

/** A repeated error has the same header as the first one. */
const withRetryHeaders = (request: FastifyRequest, outcome: IdempotentResponse): IdempotentResponse =>
  isOpenAi(request) && outcome.status >= 400
    ? { ...outcome, headers: { ...noRetryHeaders, ...outcome.headers } }
    : outcome;

/** null: the request has no Idempotency-Key. The query is a part of what a repeat must equal. */
function repeatableOf(
  endpoint: Endpoint,
  request: FastifyRequest,
  body: RequestBody,
): IdempotentRequest | null {
  const key = isRepeatable(endpoint) ? idempotencyKeyOf(request) : null;
  if (key === null) return null;
  const query = queryOf(endpoint, request);
  const bytes = comparableBytesOf(body);
  return {
    caller: request.caller ? callerIdOf(request.caller) : "",
    // A digest, because a path may be longer than an index takes.
    route: shortDigest(`POST ${pathOf(request)}`),
    key,
    body:
      Object.keys(query).length === 0 ? bytes : Buffer.concat([Buffer.from(JSON.stringify(query)), bytes]),
  };
}

function idempotencyKeyOf(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x20-\x7e]+$/.test(key) && key.length <= MAX_IDEMPOTENCY_KEY) return key;
  throw invalidRequest("Idempotency-Key", `must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters`);
}

/** Renders the result, or the error. */
async function render(
  server: ServerDependencies,
  route: Route,
  request: FastifyRequest,
  work: () => Promise<IdempotentResponse>,
): Promise<IdempotentResponse> {
  let outcome: IdempotentResponse;
  try {
    outcome = await work();
  } catch (error) {
    const known = await countWrongCredential(server, request, toApiError(server, request, error));
    outcome = { ...renderErrorResponse(server, request, known), error: known.code };
  }
  server.inspect?.(route.endpoint, outcome);
  return outcome;
}

/** Replaces the stream's name by the stream of the first request, from its start. */
async function withStream(
  server: ServerDependencies,
  route: Route,
  request: FastifyRequest,
  first: IdempotentResponse,
): Promise<IdempotentResponse> {
  const { streamName, headers } = first;
  if (streamName === undefined) return first;
  return render(server, route, request, async () => {
    const streams = required(route.streams, `the streams of ${route.endpoint.name}`);
    const stream = renderStream(await streams.replay(server.ctx, request.caller, streamName));
    return { ...stream, headers: { ...stream.headers, ...headers } };
  });
}

interface HandledRequest {
  server: ServerDependencies;
  route: Route;
  request: FastifyRequest;
  reply: FastifyReply;
  body: RequestBody;
}

async function runHandler(exchange: HandledRequest, ctx: Context): Promise<IdempotentResponse> {
  const { server, route, request } = exchange;
  const { input, info } = parseInput(exchange);
  const result = await route.handle(ctx, request.caller, input as never, info);
  const outcome = renderHandled(exchange, input, result);
  if (route.endpoint.showsSecret)
    outcome.replayAs = renderErrorResponse(server, request, secretAlreadyShown(idOf(result)));
  return outcome;
}

const runWith = (exchange: HandledRequest) => (ctx: Context) =>
  render(exchange.server, exchange.route, exchange.request, () => runHandler(exchange, ctx));

const actionsOf = (exchange: HandledRequest): IdempotentActions => ({
  run: runWith(exchange),
  resume: resumeWith(exchange),
  findRunningStream: async (resource) => {
    const { server, route, request } = exchange;
    if (!route.streams) return null;
    const { input } = parseInput(exchange);
    return route.streams.findRunning(server.ctx, request.caller, resource, input as never);
  },
});

/** For a bound Idempotency-Key: the present state of the resource, or only its id if the endpoint shows a secret. */
const resumeWith =
  (exchange: HandledRequest) =>
  async (ctx: Context, resource: string): Promise<IdempotentResponse | null> => {
    const { server, route, request } = exchange;
    if (route.endpoint.showsSecret) return renderErrorResponse(server, request, secretAlreadyShown(resource));
    const resumed = resume(exchange, ctx, resource);
    const [settled] = await Promise.allSettled([resumed]);
    if (settled.status === "fulfilled" && settled.value.result === null) return null;
    return render(server, route, request, async () => {
      const { input, result } = await resumed;
      return renderHandled(exchange, input, result);
    });
  };

async function resume(exchange: HandledRequest, ctx: Context, resource: string) {
  const { route, request } = exchange;
  const { input, info } = parseInput(exchange);
  const read = required(route.resume, `resume of ${route.endpoint.name}`);
  return { input, result: await read(ctx, request.caller, resource, input as never, info) };
}

function parseInput({ route: { endpoint }, request, reply, body }: HandledRequest) {
  const input = validate(endpoint, {
    params: request.params,
    query: queryOf(endpoint, request),
    body: parseBody(endpoint, body, request.headers["content-type"]),
  });
  return { input, info: requestInfoOf(request, reply, body) };
}

const renderHandled = (
  { server, route: { endpoint }, request }: HandledRequest,
  { query }: ReturnType<typeof validate>,
  result: unknown,
): IdempotentResponse =>
  renderResult(endpoint, result, request, query as unknown as Paging, metaOf(server.ctx, request));

function renderResult(
  endpoint: Endpoint,
  result: unknown,
  request: FastifyRequest,
  paging: Paging,
  meta: Meta,
): RenderedResponse {
  switch (endpoint.response.kind) {
    case "list":
      return renderPage(result as Page<unknown> | RawPage, paging, targetOf(request), meta);
    case "file":
      return renderFile(result as FileResponse);
    case "events":
      return renderStream(result as EventStreamResponse);
    case "foreign":
      if (result instanceof EventStreamResponse) return renderStream(result);
      return renderWithoutEnvelope(endpoint, result);
    case "one":
      if (result instanceof EventStreamResponse) return renderStream(result);
      if (result instanceof AcceptedResponse) return renderAccepted(result, meta);
      return renderData(endpoint, result, meta);
  }
}

/** Counts a wrong credential against its network, and returns 429 past the limit. */
async function countWrongCredential(
  { limits }: ServerDependencies,
  request: FastifyRequest,
  error: ApiError,
): Promise<ApiError> {
  if (!isWrongCredential(error)) return error;
  const entrance = authChannelOf(request.routeOptions.config.endpoint?.base);
  return (await limits.countFailure(entrance, request.ip)) ?? error;
}

/** The response to a repeat in place of the secret, which is not stored. */
const secretAlreadyShown = (id: string | undefined): ApiError =>
  new ApiError(
    "CONFLICT",
    "This was done already, and its secret was shown then: it is not stored and cannot be shown again.",
    id === undefined ? undefined : { id },
  );

function idOf(result: unknown): string | undefined {
  const made = (result instanceof DataResponse ? result.data : result) as { id?: string; clientId?: string };
  return made.id ?? made.clientId;
}

/** Without `api_key`, which authentication has read. */
function queryOf({ base }: Endpoint, request: FastifyRequest): Record<string, unknown> {
  const query = request.query as Record<string, unknown>;
  if (base !== "/v1") return query;
  const { api_key: _, ...rest } = query;
  return rest;
}
