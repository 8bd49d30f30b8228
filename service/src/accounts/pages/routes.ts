import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { type HtmlPage, sendPage } from "../../platform/http/html.ts";
import { wrongAddress } from "../../platform/http/plain-cookies.ts";
import { checkMailPage } from "./check-mail.ts";
import { firstAdminPage } from "./first-admin.ts";
import { type PageRequest, readPageRequest, type SignedInUser, withReturnTo } from "./page-request.ts";
import { passwordPage } from "./password.ts";
import { registerPage, signInPage } from "./sign-in.ts";
import { signedInPage } from "./signed-in.ts";
import { twoFactorPage } from "./two-factor.ts";
import { twoFactorSetUpPage } from "./two-factor-set-up.ts";
import { verifyPage } from "./verify.ts";
import { wrongOriginPage } from "./wrong-origin.ts";

type PageFor<V> = (ctx: Context, pageRequest: V) => HtmlPage | Promise<HtmlPage>;

/** The pages call /api/auth and /v1 as any client could. */
export function addSignInPages(app: FastifyInstance, ctx: Context): void {
  const preHandler = async (request: FastifyRequest, reply: FastifyReply) => {
    const given = wrongAddress(ctx, request);
    if (given === null) return;
    warnOf(given);
    return sendPage(reply, wrongOriginPage(ctx, given));
  };
  const warnOf = warnOnce(ctx);
  const forAnybody = (path: string, page: PageFor<PageRequest>) =>
    app.get(path, { preHandler }, async (request, reply) =>
      sendPage(reply, await page(ctx, await readPageRequest(ctx, request, reply))),
    );
  const forSignedIn = (path: string, page: PageFor<PageRequest & { user: SignedInUser }>) =>
    app.get(path, { preHandler }, async (request, reply) => {
      const pageRequest = await readPageRequest(ctx, request, reply);
      if (!pageRequest.user) return askToSignIn(reply, request.url);
      return sendPage(reply, await page(ctx, { ...pageRequest, user: pageRequest.user }));
    });

  app.get("/auth", async (_request, reply) => reply.redirect("/auth/signed-in"));
  forAnybody("/auth/sign-in", signInPage);
  forAnybody("/auth/register", registerPage);
  forAnybody("/auth/check-mail", checkMailPage);
  forAnybody("/auth/verify", verifyPage);
  forAnybody("/auth/two-factor", twoFactorPage);
  forAnybody("/auth/first-admin", firstAdminPage);
  forSignedIn("/auth/signed-in", signedInPage);
  forSignedIn("/auth/password", passwordPage);
  forSignedIn("/auth/two-factor/set-up", twoFactorSetUpPage);
}

const MAX_WARNINGS = 10;

/** At most ten warnings, since a client can send any Host header. */
function warnOnce({ log, links }: Context) {
  const warned = new Set<string>();
  return (given: string) => {
    if (warned.has(given) || warned.size >= MAX_WARNINGS) return;
    warned.add(given);
    log.warn(
      { given, publicUrl: links.origin() },
      "a browser used an address other than STOA_PUBLIC_URL, where sign-in does not work",
    );
  };
}

const askToSignIn = (reply: FastifyReply, path: string) =>
  reply.header("cache-control", "no-store").redirect(withReturnTo("/auth/sign-in", path));
