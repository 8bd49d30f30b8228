import { identityProviders } from "@stoa/contract";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { IdentityProviderName } from "../../integrations/identity-providers/identity-provider.ts";
import { wantsJson } from "../../platform/http/accept.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { metaOf } from "../../platform/http/error-response.ts";
import { requestSourceOf } from "../../platform/http/request-source.ts";
import { safeReturnTo } from "../../platform/http/return-to.ts";
import { setCookies } from "../../platform/http/send-response.ts";
import { sessionResponse } from "./complete-sign-in.ts";
import { deviceCookie } from "./device-cookie.ts";
import { finishSocialSignIn, startSocialSignIn } from "./social.ts";
import { clearedFlowCookie, flowCookie, flowCookieName, readFlow } from "./social-flow.ts";

/** Browsers are redirected. Programs that accept JSON get the same as JSON. */
export function addSocialSignInRoutes(app: FastifyInstance, ctx: Context): void {
  for (const provider of identityProviders) {
    app.get(`/api/auth/${provider}`, (request, reply) => handleStart(ctx, provider, request, reply));
    app.get(`/api/auth/callback/${provider}`, (request, reply) =>
      request.method === "HEAD" ? sendEmptyResponse(reply) : handleCallback(ctx, provider, request, reply),
    );
  }
}

/** The provider's code works once, so only GET redeems it. */
const sendEmptyResponse = (reply: FastifyReply) => reply.header("cache-control", "no-store").send();

async function handleStart(
  ctx: Context,
  provider: IdentityProviderName,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  reply.header("cache-control", "no-store");
  const returnTo = safeReturnTo((request.query as Record<string, unknown>)["returnTo"]);
  try {
    const { url, flow } = await startSocialSignIn(ctx, provider, { returnTo, ip: request.ip });
    setCookies(reply, [flowCookie(ctx, provider, flow)]);
    if (!wantsJson(request)) return reply.redirect(url.href);
    return reply.send({ success: true, data: { url: url.href }, meta: metaOf(ctx, request) });
  } catch (error) {
    return redirectWithProblem(request, reply, error, returnTo);
  }
}

async function handleCallback(
  ctx: Context,
  provider: IdentityProviderName,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  reply.header("cache-control", "no-store");
  const cookie = request.cookies[flowCookieName(provider)];
  const returnTo = safeReturnTo(readFlow(ctx, provider, cookie)?.returnTo);
  if (cookie !== undefined) setCookies(reply, [clearedFlowCookie(provider)]);
  try {
    const query = new URL(request.url, ctx.links.origin()).search;
    const previousToken = request.cookies[SESSION_COOKIE];
    const callback = { query, flowCookie: cookie, previousToken, source: requestSourceOf(request) };
    const { token, email } = await finishSocialSignIn(ctx, provider, callback);
    const answer = sessionResponse(token, [deviceCookie(ctx, email)]);
    setCookies(reply, answer.cookies);
    if (!wantsJson(request)) return reply.redirect(returnTo);
    return reply.send({ success: true, ...answer.beside, data: answer.data, meta: metaOf(ctx, request) });
  } catch (error) {
    return redirectWithProblem(request, reply, error, returnTo);
  }
}

/** To the second-factor page, or to the sign-in page with the problem. */
function redirectWithProblem(request: FastifyRequest, reply: FastifyReply, error: unknown, returnTo: string) {
  if (!(error instanceof ApiError) || error.code === "NOT_FOUND" || wantsJson(request)) throw error;
  const { challenge, problem = error.code } = error.details ?? {};
  if (error.code === "TWO_FACTOR_REQUIRED") {
    const fragment = new URLSearchParams({ challenge: String(challenge) });
    return reply.redirect(`/auth/two-factor?${new URLSearchParams({ returnTo })}#${fragment}`);
  }
  return reply.redirect(`/auth/sign-in?${new URLSearchParams({ problem: String(problem), returnTo })}`);
}
