import { Address, toVisibleLine } from "@stoa/contract";
import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { IdentityProblem } from "../../integrations/identity-providers/identity-problem.ts";
import type {
  IdentityProviderName,
  VerifiedIdentity,
} from "../../integrations/identity-providers/identity-provider.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { type Entrant, entrantByEmail, entrantById, openAccount } from "../people/credentials.ts";
import { accountOfIdentity, linkIdentity } from "../people/identities.ts";
import { completeSignIn } from "./complete.ts";
import { wipeUnproven } from "./first-proof.ts";
import { beginFlow, endFlow, type Flow, openFlow } from "./social-flow.ts";
import { linkedLetter } from "./social-letters.ts";
import { providerLabels, socialProblem } from "./social-problem.ts";

const MAX_NAME = 100;

/** Of our own making, never of the request's Host: where the provider sends the browser back to. */
const callbackUrl = ({ links }: Context, provider: IdentityProviderName) =>
  new URL(`/api/auth/callback/${provider}`, links.origin());

function mustBeSetUp({ integrations }: Context, provider: IdentityProviderName) {
  const port = integrations.identityProviders[provider];
  if (port) return port;
  const [label, prefix] = [providerLabels[provider], provider.toUpperCase()];
  throw new ApiError(
    "NOT_FOUND",
    `Signing in with ${label} is not set up here: it needs ${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET.`,
  );
}

/** Begins a sign-in at a provider: where the browser goes, and what it must bring back. */
export async function beginSocialSignIn(
  ctx: Context,
  provider: IdentityProviderName,
  wish: { returnTo: string; ip: string },
) {
  const port = mustBeSetUp(ctx, provider);
  const flow = await beginFlow(ctx, provider, wish);
  const url = await port
    .authorizationUrl(callbackUrl(ctx, provider), flow)
    .catch((error) => refuse(ctx, provider, error));
  return { url, flow };
}

export interface Callback {
  /** As it came, question mark included. */
  query: string;
  flowCookie: string | undefined;
  /** The session that the browser has so far. */
  earlierToken: string | undefined;
  source: RequestSource;
}

/** Ends it: a session's token, and the account's address, for whoever the provider says came back. */
export async function finishSocialSignIn(
  ctx: Context,
  provider: IdentityProviderName,
  { query, flowCookie, earlierToken, source }: Callback,
): Promise<{ token: string; email: string }> {
  const port = mustBeSetUp(ctx, provider);
  const callback = callbackUrl(ctx, provider);
  callback.search = query;
  const flow = await mustBeOwnFlow(ctx, provider, callback, flowCookie);
  const identity = await port.identify(callback, flow).catch((error) => refuse(ctx, provider, error));
  const user = await ctx.db.transaction().execute((tx) => accountOf(ctx, tx, { provider, identity, source }));
  const token = await completeSignIn(ctx, { user, via: provider, source, earlierToken });
  return { token, email: user.email };
}

/** Only the browser that began a flow may end it, once (CSRF: else a stranger could sign it in as themselves). */
async function mustBeOwnFlow(
  ctx: Context,
  provider: IdentityProviderName,
  callback: URL,
  cookie: string | undefined,
): Promise<Flow> {
  const flow = openFlow(ctx, provider, cookie);
  const states = callback.searchParams.getAll("state");
  if (!flow || states.length !== 1 || states[0] !== flow.state) throw socialProblem("FLOW_LOST", provider);
  await endFlow(ctx, flow).catch((error) => {
    throw error instanceof ApiError ? socialProblem("FLOW_LOST", provider) : error;
  });
  return flow;
}

const PROBLEMS = {
  denied: "ACCESS_DENIED",
  refused: "FLOW_LOST",
  unreachable: "SERVICE_UNAVAILABLE",
} as const;

function refuse({ log }: Context, provider: IdentityProviderName, error: unknown): never {
  if (!(error instanceof IdentityProblem)) throw error;
  if (error.kind !== "denied")
    log.warn({ provider, why: error.message }, "an identity provider let nobody in");
  throw socialProblem(PROBLEMS[error.kind], provider);
}

interface Arrival {
  provider: IdentityProviderName;
  identity: VerifiedIdentity;
  source: RequestSource;
}

/**
 * The account behind an identity: the one that it opened before, else that of its mailbox, which the provider has proven. An account
 * whose own mailbox nobody has proven yet may be a stranger's trap: its credentials are gone then.
 */
async function accountOf(ctx: Context, tx: Tx, arrival: Arrival): Promise<Entrant> {
  const { provider, identity } = arrival;
  const known = await accountOfIdentity(tx, { provider, subject: identity.subject });
  if (known) return mayEnter(await entrantById(tx, known), provider);
  const email = Address.safeParse(identity.verifiedEmail);
  if (!email.success) throw socialProblem("UNVERIFIED_EMAIL", provider);
  const isNew = await openAccount(ctx, tx, {
    email: email.data,
    name: publicNameOf(arrival),
    passwordHash: null,
  });
  const account = mayEnter(await entrantByEmail(tx, email.data), provider);
  if (!account.mailboxProvenAt)
    await wipeUnproven(ctx, tx, account, { by: provider, source: arrival.source });
  await link(ctx, tx, account, { ...arrival, isNew });
  return account;
}

function mayEnter(account: Entrant | undefined, provider: IdentityProviderName): Entrant {
  if (!account) throw socialProblem("ACCOUNT_DISABLED", provider);
  return account;
}

/**
 * GitHub shows a profile's name to everybody, so its owner chose it for the public. Google's is the name of a person, which
 * they have not published: null, a neutral name until they choose one.
 */
function publicNameOf({ provider, identity }: Arrival): string | null {
  if (provider !== "github") return null;
  const line = toVisibleLine(identity.name ?? "");
  return line.slice(0, MAX_NAME).trim() || null;
}

async function link(
  ctx: Context,
  tx: Tx,
  account: Entrant,
  { provider, identity, source, isNew }: Arrival & { isNew: boolean },
): Promise<void> {
  await linkIdentity(ctx, tx, { provider, subject: identity.subject }, account.id);
  const action = isNew ? "user.registered" : "identity.linked";
  await record(ctx, tx, { actorId: account.id, action, source, details: { provider } });
  if (!isNew) await sendMail(ctx, tx, account.email, linkedLetter(providerLabels[provider]));
}
