import { AsyncLocalStorage } from "node:async_hooks";
import type { FastifyRequest } from "fastify";
import type { KoaContextWithOIDC, Provider } from "oidc-provider";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { Page } from "../../platform/http/html.ts";
import { sourceOf } from "../../platform/http/source.ts";
import { identifySession } from "../sessions/sessions.ts";

export type Middleware = Parameters<Provider["use"]>[0];
export type Koa = Parameters<Middleware>[0] & { oidc?: KoaContextWithOIDC["oidc"] };

/** A request that the provider answers, as our own door knows it. */
interface Visit {
  request: FastifyRequest;
  /** Set: the provider wants this shown, by our door. */
  page: Page | null;
}

const visits = new AsyncLocalStorage<Visit>();

/** Lets the provider's callbacks know whose request they serve; answers the page that one of them wants shown. */
export async function visiting(
  request: FastifyRequest,
  answer: () => Promise<unknown>,
): Promise<Page | null> {
  const visit: Visit = { request, page: null };
  await visits.run(visit, answer);
  return visit.page;
}

function visit(): Visit {
  const current = visits.getStore();
  if (!current) throw new Error("nobody visits");
  return current;
}

export const visitSource = (): RequestSource => sourceOf(visit().request);

/** Whoever is signed in on our own site, in the browser that visits. */
export async function visitor(ctx: Context): Promise<SessionCaller | null> {
  const token = visit().request.cookies[SESSION_COOKIE];
  return token === undefined ? null : identifySession(ctx, token);
}

/** Leaves the answer to our own door. */
export function showPage(koa: KoaContextWithOIDC, page: Page): void {
  visit().page = { status: koa.status, ...page };
  koa.respond = false;
}
