import type { FastifyReply, FastifyRequest } from "fastify";
import { decodeJwt } from "jose";
import type { InteractionResults, Provider } from "oidc-provider";
import type { Context, SessionCaller } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { isFresh } from "../../platform/http/fresh-sign-in.ts";
import { sendPage } from "../../platform/http/html.ts";
import { requireSameOrigin } from "../../platform/http/same-origin.ts";
import { toSeconds } from "./adapter-defaults.ts";
import { grantConsent, interactionExpired, readConsentRequest } from "./consent.ts";
import { consentPage } from "./consent-page.ts";
import { toProviderLogin } from "./provider-session.ts";
import { findSignedInCaller } from "./request-context.ts";

type Interaction = Awaited<ReturnType<Provider["interactionDetails"]>>;

export interface InteractionRequest {
  ctx: Context;
  provider: Provider;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** GET /oauth/interaction/:uid: reports a sign-in to the provider at once, or shows the consent page. */
export async function showInteraction(step: InteractionRequest) {
  const interaction = await findInteraction(step);
  const caller = await findSignedInCaller(step.ctx);
  if (!caller || !isFreshEnough(interaction, caller)) return redirectToSignIn(step);
  if (interaction.prompt.name === "login") return finishLogin(step, interaction, caller);
  mustBeSamePerson(interaction, caller);
  if (needsFreshSignIn(step, interaction, caller)) return restartAuthorization(step, interaction);
  return sendPage(step.reply, consentPage(await readConsentRequest(step, interaction, caller)));
}

/** POST /oauth/interaction/:uid with `decision`. */
export async function decideInteraction(step: InteractionRequest) {
  requireSameOrigin(step.request, step.ctx.links.origin(), "proof");
  const interaction = await findInteraction(step);
  const caller = await findSignedInCaller(step.ctx);
  if (!caller) return redirectToSignIn(step);
  mustBeSamePerson(interaction, caller);
  if (interaction.prompt.name !== "consent") throw interactionExpired();
  if (readDecision(step.request) !== "allow") return finishInteraction(step, accessDenied);
  if (needsFreshSignIn(step, interaction, caller)) return restartAuthorization(step, interaction);
  const consent = await readConsentRequest(step, interaction, caller);
  return finishInteraction(step, { consent: { grantId: await grantConsent(step, caller, consent) } });
}

const accessDenied: InteractionResults = {
  error: "access_denied",
  error_description: "the user did not allow it",
};

/** The provider's cookie belongs to this browser and this path. */
async function findInteraction({ provider, request, reply }: InteractionRequest): Promise<Interaction> {
  try {
    const interaction = await provider.interactionDetails(request.raw, reply.raw);
    if (interaction.uid === (request.params as { uid: string }).uid) return interaction;
  } catch (error) {
    throw toInteractionError(error);
  }
  throw interactionExpired();
}

// By name and not by class, since the library is loaded with the first OAuth request.
const toInteractionError = (error: unknown) =>
  (error as Error).name === "SessionNotFound" ? interactionExpired() : error;

/** Another tab may have signed in another user since. */
function mustBeSamePerson({ session }: Interaction, { userId }: SessionCaller): void {
  if (session?.accountId !== toId("usr", userId)) throw interactionExpired();
}

/** A client may require a new sign-in (`prompt=login`) or one of the last seconds (`max_age`). */
function isFreshEnough({ prompt, iat, params }: Interaction, { authenticatedAt }: SessionCaller): boolean {
  if (prompt.reasons.includes("login_prompt")) return toSeconds(authenticatedAt) >= iat;
  if (prompt.reasons.includes("max_age"))
    return toSeconds(authenticatedAt) >= iat - Number(params["max_age"]);
  return true;
}

/** `offline_access` outlives the session, so it needs a fresh sign-in, as creating an API key does. */
function needsFreshSignIn(
  { ctx }: InteractionRequest,
  { params }: Interaction,
  caller: SessionCaller,
): boolean {
  const scopes = String(params["scope"] ?? "").split(" ");
  return scopes.includes("offline_access") && !isFresh(ctx, caller);
}

function redirectToSignIn({ request, reply }: InteractionRequest) {
  const { uid } = request.params as { uid: string };
  return reply.redirect(`/auth/sign-in?returnTo=${encodeURIComponent(`/oauth/interaction/${uid}`)}`, 303);
}

/** Restarts from the authorization request: a new sign-in ends the provider's session and this interaction. */
function restartAuthorization({ reply }: InteractionRequest, { params }: Interaction) {
  const request = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const item of [value].flat()) if (item !== undefined) request.append(name, String(item));
  const query = new URLSearchParams({ problem: "STALE_SESSION", returnTo: `/oauth/authorize?${request}` });
  return reply.redirect(`/auth/sign-in?${query}`, 303);
}

/** A client may name the user by an id token, which the provider has verified. */
function finishLogin(step: InteractionRequest, { params }: Interaction, caller: SessionCaller) {
  const login = toProviderLogin(caller);
  const hint = params["id_token_hint"] as string | undefined;
  if (hint === undefined || decodeJwt(hint).sub === login.accountId)
    return finishInteraction(step, { login });
  return finishInteraction(step, {
    error: "login_required",
    error_description: "another account is signed in",
  });
}

async function finishInteraction(
  { provider, request, reply }: InteractionRequest,
  result: InteractionResults,
) {
  try {
    return reply.redirect(await provider.interactionResult(request.raw, reply.raw, result), 303);
  } catch (error) {
    throw toInteractionError(error);
  }
}

function readDecision({ body, headers }: FastifyRequest): string | null {
  if (!headers["content-type"]?.startsWith("application/x-www-form-urlencoded") || !Buffer.isBuffer(body))
    return null;
  return new URLSearchParams(body.toString()).get("decision");
}
