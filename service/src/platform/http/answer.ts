import { type Endpoint, isRepeatable, type Meta } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Context, callerIdOf } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import type { Page, Paging } from "../db/paging.ts";
import { type Incoming, identityOf, parseBody, withBody } from "./body.ts";
import type { Door } from "./door.ts";
import {
  digest,
  type RawPage,
  type Rendered,
  renderAccepted,
  renderBare,
  renderFile,
  renderOne,
  renderPage,
  renderStream,
} from "./envelope.ts";
import { sendEvents } from "./event-stream.ts";
import { factsOf } from "./facts.ts";
import { type Actions, type Outcome, type Repeatable, runOnce } from "./idempotency.ts";
import { neverRepeated } from "./openai-error.ts";
import { entranceOf, isWrongCredential } from "./rate-limit.ts";
import { metaOf, renderRefusal, toApiError } from "./refusal.ts";
import { isOpenAi, pathOf, targetOf } from "./request-path.ts";
import { Accepted, Answer, EventStream, FileAnswer, type Route } from "./route.ts";
import { send } from "./send.ts";
import { validate } from "./validate.ts";

const MAX_IDEMPOTENCY_KEY = 255;

/** Runs the verb of a route, once for its Idempotency-Key, and sends what it answers. */
export function answer(door: Door, route: Route, request: FastifyRequest, reply: FastifyReply) {
  return withBody(door, route, request, async (body) => {
    const exchange = { door, route, request, reply, body };
    const repeatable = repeatableOf(route.endpoint, request, body);
    const first = repeatable
      ? inTheirWords(request, await runOnce(door.ctx, repeatable, actionsOf(exchange)))
      : await running(exchange)(door.ctx);
    const outcome = first.again === undefined ? first : await streamAgain(door, route, request, first);
    // Whoever hears that something changed must not meet what this process remembered of before.
    if (route.endpoint.method !== "GET" && !route.leavesMemory) await door.ctx.notices.caughtUp();
    if (outcome.stream && request.method === "HEAD") outcome.stream.ended();
    else if (outcome.stream)
      return sendEvents(door, route.endpoint, request, reply.headers(outcome.headers), outcome.stream);
    return send(request, reply, outcome);
  });
}

/** A repeat of an error is told in the same headers, too. */
const inTheirWords = (request: FastifyRequest, outcome: Outcome): Outcome =>
  isOpenAi(request) && outcome.status >= 400
    ? { ...outcome, headers: { ...neverRepeated, ...outcome.headers } }
    : outcome;

/** null: it has no Idempotency-Key. What a repeat must ask for too: another query is another request. */
function repeatableOf(endpoint: Endpoint, request: FastifyRequest, body: Incoming): Repeatable | null {
  const key = isRepeatable(endpoint) ? idempotencyKeyOf(request) : null;
  if (key === null) return null;
  const query = queryOf(endpoint, request);
  const bytes = identityOf(body);
  return {
    caller: request.caller ? callerIdOf(request.caller) : "",
    // A digest, because a path may be longer than an index takes.
    route: digest(`POST ${pathOf(request)}`),
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

/** Carries the request out and renders what comes of it; an ApiError is an answer too. */
async function render(
  door: Door,
  route: Route,
  request: FastifyRequest,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  let outcome: Outcome;
  try {
    outcome = await work();
  } catch (error) {
    const known = await countIfWrong(door, request, toApiError(door, request, error));
    outcome = { ...renderRefusal(door, request, known), error: known.code };
  }
  door.inspect?.(route.endpoint, outcome);
  return outcome;
}

/** A repeat hears the stream of the first request from its beginning, while it goes on and afterwards. */
const streamAgain = (door: Door, route: Route, request: FastifyRequest, { again, headers }: Outcome) =>
  render(door, route, request, async () => {
    const stream = renderStream(await route.again!(door.ctx, request.caller!, again!));
    return { ...stream, headers: { ...stream.headers, ...headers } };
  });

interface Exchange {
  door: Door;
  route: Route;
  request: FastifyRequest;
  reply: FastifyReply;
  body: Incoming;
}

/** Parses, calls the verb and renders what it answers. */
async function carryOut(exchange: Exchange, ctx: Context): Promise<Outcome> {
  const { door, route, request } = exchange;
  const { input, facts } = received(exchange);
  const result = await route.handle(ctx, request.caller!, input as never, facts);
  const outcome = rendered(exchange, input, result);
  if (route.endpoint.showsSecret) outcome.repeat = renderRefusal(door, request, madeAlready(idOf(result)));
  return outcome;
}

const running = (exchange: Exchange) => (ctx: Context) =>
  render(exchange.door, exchange.route, exchange.request, () => carryOut(exchange, ctx));

const actionsOf = (exchange: Exchange): Actions => ({
  run: running(exchange),
  resume: resuming(exchange),
  join: async (resource) => {
    const { door, route, request } = exchange;
    if (!route.join) return null;
    return route.join(door.ctx, request.caller!, resource, received(exchange).input as never);
  },
});

/** Of a bound Idempotency-Key: the present state of the resource; of one that shows a secret its name alone. */
const resuming =
  (exchange: Exchange) =>
  async (ctx: Context, resource: string): Promise<Outcome | null> => {
    const { door, route, request } = exchange;
    if (route.endpoint.showsSecret) return renderRefusal(door, request, madeAlready(resource));
    const resumed = resume(exchange, ctx, resource);
    const [settled] = await Promise.allSettled([resumed]);
    if (settled.status === "fulfilled" && settled.value.result === null) return null;
    return render(door, route, request, async () => {
      const { input, result } = await resumed;
      return rendered(exchange, input, result);
    });
  };

async function resume(exchange: Exchange, ctx: Context, resource: string) {
  const { route, request } = exchange;
  const { input, facts } = received(exchange);
  return { input, result: await route.resume!(ctx, request.caller!, resource, input as never, facts) };
}

function received({ route: { endpoint }, request, reply, body }: Exchange) {
  const input = validate(endpoint, {
    params: request.params,
    query: queryOf(endpoint, request),
    body: parseBody(endpoint, body, request.headers["content-type"]),
  });
  return { input, facts: factsOf(request, reply, body) };
}

const rendered = (
  { door, route: { endpoint }, request }: Exchange,
  { query }: ReturnType<typeof validate>,
  result: unknown,
): Outcome => renderResult(endpoint, result, request, query as unknown as Paging, metaOf(door.ctx, request));

function renderResult(
  endpoint: Endpoint,
  result: unknown,
  request: FastifyRequest,
  paging: Paging,
  meta: Meta,
): Rendered {
  if (result instanceof Accepted) return renderAccepted(result, meta);
  if (result instanceof FileAnswer) return renderFile(result);
  if (result instanceof EventStream) return renderStream(result);
  if (endpoint.inWordsOf) return renderBare(endpoint, result);
  if (!endpoint.list) return renderOne(endpoint, result, meta);
  return renderPage(result as Page<unknown> | RawPage, paging, targetOf(request), meta);
}

/** A wrong credential counts against its address, and is one too many at some point. */
async function countIfWrong({ limits }: Door, request: FastifyRequest, error: ApiError): Promise<ApiError> {
  if (!isWrongCredential(error)) return error;
  const entrance = entranceOf(request.routeOptions.config.endpoint?.base);
  return (await limits.countFailure(entrance, request.ip)) ?? error;
}

/** What a repeat hears in the place of a secret, which is kept nowhere. */
const madeAlready = (id: string | undefined): ApiError =>
  new ApiError(
    "CONFLICT",
    "This was done already, and its secret was shown then: it is not kept and cannot be shown again.",
    id === undefined ? undefined : { id },
  );

function idOf(result: unknown): string | undefined {
  const made = (result instanceof Answer ? result.data : result) as { id?: string; clientId?: string };
  return made.id ?? made.clientId;
}

/** Every query below /v1 takes `api_key`, which the door has read already. */
function queryOf({ base }: Endpoint, request: FastifyRequest): Record<string, unknown> {
  const query = request.query as Record<string, unknown>;
  if (base !== "/v1") return query;
  const { api_key: _, ...rest } = query;
  return rest;
}
