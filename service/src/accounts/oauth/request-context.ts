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

interface ProviderRequest {
  request: FastifyRequest;
  /** The page that the provider asks our server to render. */
  page: HtmlPage | null;
}

const storage = new AsyncLocalStorage<ProviderRequest>();

/** The provider's callbacks can read the request. Returns the page that one of them passed to `showPage`. */
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

/** By our own session cookie. */
export async function findSignedInCaller(ctx: Context): Promise<SessionCaller | null> {
  const token = currentRequest().request.cookies[SESSION_COOKIE];
  return token === undefined ? null : authenticateSession(ctx, token);
}

/** Our server renders the page with its own layout. */
export function showPage(koa: KoaContextWithOIDC, page: HtmlPage): void {
  currentRequest().page = { status: koa.status, ...page };
  koa.respond = false;
}
