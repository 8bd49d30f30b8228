import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
  RouteHandlerMethod,
} from "fastify";
import type { Provider } from "oidc-provider";
import { once } from "../../core/once.ts";
import { sendPage } from "../../platform/http/html.ts";
import { SECURITY_HEADERS } from "../../platform/http/server-dependencies.ts";
import { limitFlowsPerNetwork } from "./flow-rate-limit.ts";
import { decideInteraction, type InteractionRequest, showInteraction } from "./interaction.ts";
import type { OAuthDependencies } from "./provider.ts";
import { runWithRequest } from "./request-context.ts";
import { addResourceMetadata } from "./resource-metadata.ts";

/** The provider may answer with a form that submits itself, so its policy allows the script. */
const BROWSER_PATHS = [
  "/oauth/authorize/:uid",
  "/oauth/logout",
  "/oauth/logout/confirm",
  "/oauth/logout/success",
];
const API_PATHS = [
  "/oauth/token",
  "/oauth/revoke",
  "/oauth/introspect",
  "/oauth/userinfo",
  "/oauth/jwks",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-authorization-server",
];
const FORM_SECURITY_POLICY = `${SECURITY_HEADERS["content-security-policy"]}; script-src 'self'; base-uri 'none'`;

export function addOAuthServer(app: FastifyInstance, dependencies: OAuthDependencies): void {
  const { ctx } = dependencies;
  const provider = once(async () => (await import("./provider.ts")).createProvider(dependencies));
  const stepwise =
    (take: (step: InteractionRequest) => Promise<unknown>): RouteHandlerMethod =>
    async (request, reply) => {
      await runWithRequest(request, async () => take({ ctx, provider: await provider(), request, reply }));
      return reply;
    };
  app.get("/oauth/interaction/:uid", stepwise(showInteraction));
  app.post("/oauth/interaction/:uid", stepwise(decideInteraction));
  addResourceMetadata(app, ctx);
  app.register((scope, _options, done) => {
    addProvider(scope, provider, limitFlowsPerNetwork(ctx));
    done();
  });
}

function addProvider(
  scope: FastifyInstance,
  provider: () => Promise<Provider>,
  notTooMany: onRequestAsyncHookHandler,
): void {
  scope.removeAllContentTypeParsers();
  // The provider reads the stream itself, at most 56 KiB.
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  const method = ["GET", "POST", "OPTIONS"];
  const handler = providerHandler(provider);
  for (const url of BROWSER_PATHS)
    scope.route({ url, method, handler, exposeHeadRoute: false, onRequest: allowOwnForms });
  for (const url of API_PATHS)
    scope.route({ url, method: [...method, "HEAD"], handler, exposeHeadRoute: false });
  // These two start a flow, which leaves a row.
  const onRequest = [notTooMany, allowOwnForms];
  scope.route({ url: "/oauth/authorize", method, handler, exposeHeadRoute: false, onRequest });
  scope.route({ url: "/oauth/par", method, handler, exposeHeadRoute: false, onRequest: notTooMany });
  // Registration reads no cookie, so apps in browsers may call it.
  const config = { cors: { origin: "*" } };
  scope.route({ url: "/oauth/register", method: ["POST", "OPTIONS"], handler, config });
}

async function allowOwnForms(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header("content-security-policy", FORM_SECURITY_POLICY);
}

/** The provider writes its response itself, unless it asks for a page. */
const providerHandler =
  (provider: () => Promise<Provider>): RouteHandlerMethod =>
  async (request, reply) => {
    const answer = (await provider()).callback();
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value!);
    const page = await runWithRequest(request, () => answer(request.raw, reply.raw));
    if (page) return sendPage(reply, page);
    reply.hijack();
    return reply;
  };
