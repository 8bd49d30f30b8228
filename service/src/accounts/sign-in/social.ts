import { Address, toVisibleLine } from "@stoa/contract";
import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { IdentityProblem } from "../../integrations/identity-providers/identity-problem.ts";
import type {
  IdentityProviderName,
  VerifiedIdentity,
} from "../../integrations/identity-providers/identity-provider.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import {
  createVerifiedAccount,
  findSignInAccount,
  findSignInAccountByEmail,
  type SignInAccount,
} from "../people/credentials.ts";
import { findUserIdOfIdentity, linkIdentity } from "../people/identities.ts";
import { toUserId } from "../people/users.ts";
import { completeSignIn } from "./complete-sign-in.ts";
import { identityLinkedEmail } from "./social-emails.ts";
import { consumeFlow, type Flow, readFlow, startFlow } from "./social-flow.ts";
import { providerLabels, socialProblem } from "./social-problem.ts";
import { resetUnverifiedAccount } from "./unverified-account.ts";

const MAX_NAME = 100;

/** From our own origin, never from the Host header. */
const toCallbackUrl = ({ links }: Context, provider: IdentityProviderName) =>
  new URL(`/api/auth/callback/${provider}`, links.origin());

function mustFindProvider({ integrations }: Context, provider: IdentityProviderName) {
  const port = integrations.identityProviders[provider];
  if (port) return port;
  const [label, prefix] = [providerLabels[provider], provider.toUpperCase()];
  throw new ApiError(
    "NOT_FOUND",
    `Signing in with ${label} is not set up here: it needs ${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET.`,
  );
}

export async function startSocialSignIn(
  ctx: Context,
  provider: IdentityProviderName,
  input: { returnTo: string; ip: string },
) {
  const port = mustFindProvider(ctx, provider);
  const flow = await startFlow(ctx, provider, input);
  const url = await port
    .authorizationUrl(toCallbackUrl(ctx, provider), flow)
    .catch((error) => throwSocialProblem(ctx, provider, error));
  return { url, flow };
}

export interface SocialCallback {
  /** As received, with the question mark. */
  query: string;
  flowCookie: string | undefined;
  /** The browser's current session. */
  previousToken: string | undefined;
  source: RequestSource;
}

export async function finishSocialSignIn(
  ctx: Context,
  provider: IdentityProviderName,
  { query, flowCookie, previousToken, source }: SocialCallback,
): Promise<{ token: string; email: string }> {
  const port = mustFindProvider(ctx, provider);
  const callback = toCallbackUrl(ctx, provider);
  callback.search = query;
  const flow = await mustBeOwnFlow(ctx, provider, callback, flowCookie);
  const identity = await port
    .identify(callback, flow)
    .catch((error) => throwSocialProblem(ctx, provider, error));
  const user = await ctx.db
    .transaction()
    .execute((tx) => findOrCreateAccount(ctx, tx, { provider, identity, source }));
  const token = await completeSignIn(ctx, { user, via: provider, source, previousToken });
  return { token, email: user.email };
}

/**
 * Only the browser that started a flow may finish it, once (CSRF: a stranger could sign it in to their own account).
 */
async function mustBeOwnFlow(
  ctx: Context,
  provider: IdentityProviderName,
  callback: URL,
  cookie: string | undefined,
): Promise<Flow> {
  const flow = readFlow(ctx, provider, cookie);
  const states = callback.searchParams.getAll("state");
  if (!flow || states.length !== 1 || states[0] !== flow.state) throw socialProblem("FLOW_LOST", provider);
  await consumeFlow(ctx, flow).catch((error) => {
    throw error instanceof ApiError ? socialProblem("FLOW_LOST", provider) : error;
  });
  return flow;
}

const PROBLEM_BY_KIND = {
  denied: "ACCESS_DENIED",
  refused: "FLOW_LOST",
  unreachable: "SERVICE_UNAVAILABLE",
} as const;

function throwSocialProblem({ log }: Context, provider: IdentityProviderName, error: unknown): never {
  if (!(error instanceof IdentityProblem)) throw error;
  if (error.kind !== "denied")
    log.warn({ provider, why: error.message }, "a sign-in at an identity provider failed");
  throw socialProblem(PROBLEM_BY_KIND[error.kind], provider);
}

interface SocialIdentity {
  provider: IdentityProviderName;
  identity: VerifiedIdentity;
  source: RequestSource;
}

/**
 * The account of the identity, else the account of its verified email address. An account whose address was never
 * verified may be a stranger's trap, so its credentials are removed first.
 */
async function findOrCreateAccount(
  ctx: Context,
  tx: Tx,
  socialIdentity: SocialIdentity,
): Promise<SignInAccount> {
  const { provider, identity } = socialIdentity;
  const known = await findUserIdOfIdentity(tx, { provider, subject: identity.subject });
  if (known) return mustBeEnabled(await findSignInAccount(tx, known), provider);
  const email = Address.safeParse(identity.verifiedEmail);
  if (!email.success) throw socialProblem("UNVERIFIED_EMAIL", provider);
  const isNew = await createVerifiedAccount(ctx, tx, {
    email: email.data,
    name: readPublicName(socialIdentity),
    passwordHash: null,
  });
  const account = mustBeEnabled(await findSignInAccountByEmail(tx, email.data), provider);
  if (!account.emailVerifiedAt)
    await resetUnverifiedAccount(ctx, tx, account, { by: provider, source: socialIdentity.source });
  await link(ctx, tx, account, { ...socialIdentity, isNew });
  return account;
}

function mustBeEnabled(account: SignInAccount | undefined, provider: IdentityProviderName): SignInAccount {
  if (!account) throw socialProblem("ACCOUNT_DISABLED", provider);
  return account;
}

/** GitHub profiles are public. Google's name is private: null, a neutral name until the user chooses one. */
function readPublicName({ provider, identity }: SocialIdentity): string | null {
  if (provider !== "github") return null;
  const line = toVisibleLine(identity.name ?? "");
  return line.slice(0, MAX_NAME).trim() || null;
}

async function link(
  ctx: Context,
  tx: Tx,
  account: SignInAccount,
  { provider, identity, source, isNew }: SocialIdentity & { isNew: boolean },
): Promise<void> {
  await linkIdentity(ctx, tx, { provider, subject: identity.subject }, account.id);
  const action = isNew ? "user.registered" : "identity.linked";
  await recordAudit(ctx, tx, { actorId: account.id, action, source, details: { provider } });
  if (isNew) return;
  const label = providerLabels[provider];
  const about = { userId: account.id, subjectId: toUserId(account.id), occurrence: ctx.newId() };
  const message = identityLinkedEmail(label);
  await notifyAccount(ctx, tx, { ...about, kind: "identity.linked", data: { provider: label } }, message);
}
