import type { Provider, Session } from "oidc-provider";
import type { Context, SessionCaller } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { hasPlainCookies, toPlainName } from "../../platform/http/plain-cookies.ts";
import { catchUpNode, type ServerDependencies } from "../../platform/http/server-dependencies.ts";
import { endSessions } from "../sessions/sessions.ts";
import { toSeconds } from "./adapter-defaults.ts";
import { findSignedInCaller, type Koa, type Middleware, requestSource } from "./request-context.ts";

/**
 * oidc-provider's session outlives ours: without this, the next user of the browser would act as the previous one at
 * every client. It ends unless it belongs to the sign-in of this browser's session. A logout there ends our session.
 */
export const syncProviderSession =
  (server: Pick<ServerDependencies, "ctx" | "catchUpSiblings">, provider: Provider): Middleware =>
  async (koa, next) => {
    const { ctx } = server;
    if (koa.cookies.get(provider.cookieName("session")) === undefined) return next();
    const caller = await findSignedInCaller(ctx);
    const session = await provider.Session.get(koa);
    const isOurs = caller !== null && isSessionOf(caller, session);
    if (session.accountId !== undefined && !isOurs) await session.destroy();
    await next();
    if (!isOurs || !isConfirmedLogout(koa)) return;
    await signOut(ctx, koa, caller);
    // After the response no cache of this node may still know the session.
    await catchUpNode(server);
  };

/** Compares what toProviderLogin reported. */
const isSessionOf = (caller: SessionCaller, { accountId, loginTs }: Session) =>
  accountId === toId("usr", caller.userId) && loginTs === toSeconds(caller.authenticatedAt);

export const toProviderLogin = (caller: SessionCaller) => ({
  accountId: toId("usr", caller.userId),
  ts: toSeconds(caller.authenticatedAt),
  ...(caller.secondFactor && { amr: ["mfa"] }),
});

function isConfirmedLogout({ oidc, status }: Koa): boolean {
  return oidc?.route === "end_session_confirm" && status === 303 && Boolean(oidc.params?.["logout"]);
}

async function signOut(ctx: Context, koa: Koa, { userId, sessionId }: SessionCaller): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    await endSessions(ctx, tx, userId, { only: sessionId });
    await recordAudit(ctx, tx, {
      actorId: userId,
      action: "session.ended",
      target: { type: "session", id: toId("ses", sessionId) },
      source: requestSource(),
      details: { via: "oauth" },
    });
  });
  const name = hasPlainCookies(ctx) ? toPlainName(SESSION_COOKIE) : SESSION_COOKIE;
  koa.cookies.set(name, null, { signed: false, path: "/", httpOnly: true, sameSite: "lax" });
}
