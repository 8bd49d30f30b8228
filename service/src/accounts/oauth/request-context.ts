import { AsyncLocalStorage } from "node:async_hooks";
import type { FastifyRequest } from "fastify";
import type { KoaContextWithOIDC, Provider } from "oidc-provider";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { HtmlPage } from "../../platform/http/html.ts";
import { requestSourceOf } from "../../platform/http/request-source.ts";
import { authenticateSession } from "../sessions/sessions.ts";

export type Middleware = Parameters<Provider["use"]>[0];
export type Koa = Parameters<Middleware>[0] & { oidc?: KoaContextWithOIDC["oidc"] };

/** A request that the provider answers, as our own door knows it. */
interface ProviderRequest {
  request: FastifyRequest;
  /** Set: the provider wants this shown, by our door. */
  page: HtmlPage | null;
}

const storage = new AsyncLocalStorage<ProviderRequest>();

/** Lets the provider's callbacks know whose request they serve; answers the page that one of them wants shown. */
export async function runWithRequest(
  request: FastifyRequest,
  answer: () => Promise<unknown>,
): Promise<HtmlPage | null> {
  const visit: ProviderRequest = { request, page: null };
  await storage.run(visit, answer);
  return visit.page;
}

function currentRequest(): ProviderRequest {
  const current = storage.getStore();
  if (!current) throw new Error("nobody visits");
  return current;
}

export const requestSource = (): RequestSource => requestSourceOf(currentRequest().request);

/** Whoever is signed in on our own site, in the browser that visits. */
export async function findSignedInCaller(ctx: Context): Promise<SessionCaller | null> {
  const token = currentRequest().request.cookies[SESSION_COOKIE];
  return token === undefined ? null : authenticateSession(ctx, token);
}

/** Leaves the answer to our own door. */
export function showPage(koa: KoaContextWithOIDC, page: HtmlPage): void {
  currentRequest().page = { status: koa.status, ...page };
  koa.respond = false;
}
