import { randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Member } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { once } from "../../core/once.ts";
import { type CredentialLookup, mustBeAllowed } from "../../platform/http/authenticate.ts";
import { type AuthDependencies, authenticateRequest } from "../../platform/http/authenticate-request.ts";
import { parseJsonBody } from "../../platform/http/json-body.ts";
import { disconnectSignalOf } from "../../platform/http/request-info.ts";
import { requireSameOrigin } from "../../platform/http/same-origin.ts";
import { sendWebResponse, toWebRequest } from "./fetch-adapter.ts";
import { type McpMessage, RequestCancellation, SESSION_HEADER } from "./request-cancellation.ts";

/** nginx logs this status for a client that disconnected; no client receives it. */
const CLIENT_CLOSED_REQUEST = 499;
const ACCESS = { who: "member", permission: "ai:execute" } as const;

/** API keys, and tokens of this resource. No cookies, which another site could make a browser send. */
type McpEndpointOptions = Pick<AuthDependencies, "ctx" | "limits"> & Pick<CredentialLookup, "key" | "token">;

/** Adds the Streamable HTTP endpoint of MCP. */
export function addMcpEndpoint(app: FastifyInstance, { ctx, limits, key, token }: McpEndpointOptions): void {
  const identify = { key, token, session: async () => null, guest: () => null };
  const handler = once(async () => (await import("./server.ts")).createMcpRequestHandler(ctx));
  const cancels = new RequestCancellation(ctx);
  app.route({
    method: ["GET", "POST", "DELETE"],
    url: "/mcp",
    exposeHeadRoute: false,
    onRequest: async (request, reply) => {
      await authenticateRequest({ ctx, identify, limits }, request, reply, {
        presented: toPresentedCredentials(request),
      });
      // MCP requires this check against DNS rebinding.
      requireSameOrigin(request, ctx.links.origin(), "no objection");
      mustBeAllowed(request.caller!, ACCESS);
    },
    handler: async (request, reply) => {
      const caller = request.caller as Member;
      const message = parseMessage(request);
      const signal = AbortSignal.any([
        disconnectSignalOf(reply),
        await cancels.track(caller, request, reply, message),
      ]);
      const { fetch } = await handler();
      // The library registers its listener only now, so it would miss an earlier disconnect.
      if (signal.aborted) return reply.code(CLIENT_CLOSED_REQUEST).send();
      const authInfo = { token: "", clientId: caller.userId, scopes: [], extra: { caller } };
      const webRequest = toWebRequest(request, ctx.links.origin(), signal);
      const answer = await fetch(webRequest, { authInfo, parsedBody: message });
      if (message?.method === "initialize" && answer.ok) reply.header(SESSION_HEADER, randomUUID());
      return sendWebResponse(reply, answer);
    },
  });
}

const toPresentedCredentials = ({ headers: { authorization } }: FastifyRequest) => ({
  authorization,
  apiKeyInQuery: undefined,
  sessionCookie: undefined,
  guestCookie: undefined,
  requireSameOrigin() {},
});

/** A batch would count as one request of the quota. */
function parseMessage({ body, headers }: FastifyRequest): McpMessage | undefined {
  if (!Buffer.isBuffer(body)) return undefined;
  const message = parseJsonBody(body, headers["content-type"]);
  if (Array.isArray(message)) throw invalidRequest("body", "must be one message: send each by itself");
  return message as McpMessage | undefined;
}
