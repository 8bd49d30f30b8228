import type { FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { authenticate, hasCredentials, type RequestCredentials } from "./authenticate.ts";
import { isPagePart } from "./page-part.ts";
import { isWrongCredential } from "./rate-limit.ts";
import { credentialsOf } from "./request-credentials.ts";
import type { ServerDependencies } from "./server-dependencies.ts";

export type AuthDependencies = Pick<ServerDependencies, "ctx" | "identify" | "limits">;

/** Identifies the caller and counts the request, before a response shows whether the path exists. */
export async function authenticateRequest(
  gate: AuthDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    presented = credentialsOf(request, gate.ctx.links.origin()),
    countsInQuota = true,
  }: { presented?: RequestCredentials; countsInQuota?: boolean } = {},
): Promise<void> {
  request.caller = await callerOf(gate, request, presented);
  if (isPagePart()) return;
  const { limits } = gate;
  if (!countsInQuota) {
    reply.headers(await limits.peek(request.caller, request.ip));
    return;
  }
  const { headers, refusal } = await limits.count(request.caller, request.ip);
  reply.headers(headers);
  if (refusal) throw refusal;
}

/** The caller of a request that authenticateRequest() let in: of any endpoint that is not public. */
export const identifiedCallerOf = ({ caller }: FastifyRequest): Caller => required(caller, "the caller");

/** A wrong credential counts against its network. Past the limit the response is 429; right credentials still work. */
async function callerOf(
  { identify, limits }: AuthDependencies,
  { ip }: FastifyRequest,
  presented: RequestCredentials,
): Promise<Caller> {
  try {
    return await authenticate(identify, presented);
  } catch (error) {
    if (!hasCredentials(presented) || !isWrongCredential(error)) throw error;
    throw (await limits.countFailure("api", ip)) ?? error;
  }
}
