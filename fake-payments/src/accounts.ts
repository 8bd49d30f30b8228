import { randomBytes } from "node:crypto";
import { z } from "zod";
import { notFoundPage, onboardingPage } from "./html-pages.ts";
import {
  type Call,
  type Endpoint,
  jsonReply,
  page,
  type Reply,
  readKeyed,
  redirect,
  refusal,
} from "./http.ts";
import { payoutAccounts } from "./methods.ts";

const AccountRequest = z.strictObject({ ownerId: z.string() });

/** Payout accounts: the shared test accounts, and those that sellers set up on our page. */
export const accountEndpoints: Endpoint[] = [
  ["POST", /^\/v1\/accounts$/, makeAccount],
  ["GET", /^\/v1\/accounts$/, findAccount],
  ["GET", /^\/onboarding\/([^/]+)$/, showOnboardingPage],
  ["POST", /^\/onboarding\/([^/]+)$/, finish],
];

/** Unguessable, since the account's page needs no sign-in. */
const newAccountId = () => `acct_test_${randomBytes(16).toString("hex")}`;

/** One account per owner, also on a repeat. */
async function makeAccount(call: Call): Promise<Reply> {
  const { provider, request } = call;
  const read = await readKeyed(request, AccountRequest);
  if (!read) return refusal(400, "invalid_request");
  const { ownerId } = read.asked;
  const { id, state } = await provider.store.insertAccount({
    ...{ id: newAccountId(), ownerId },
    ...{ state: "restricted", createdAt: provider.now() },
  });
  return accountReply(call, id, state === "enabled");
}

async function findAccount(call: Call): Promise<Reply> {
  const id = call.url.searchParams.get("account") ?? "";
  if (payoutAccounts.has(id)) return accountReply(call, id, true);
  const account = await call.provider.store.findAccount(id);
  return account ? accountReply(call, id, account.state === "enabled") : refusal(404, "unknown_account");
}

/** What a real provider asks for on its page, by Stripe's names. */
const REQUIREMENTS = ["individual.verification.document", "external_account"];

const accountReply = ({ provider }: Call, id: string, payoutsEnabled: boolean): Reply =>
  jsonReply(200, {
    id,
    payoutsEnabled,
    disabledReason: payoutsEnabled ? null : "requirements.past_due",
    requirements: payoutsEnabled
      ? []
      : REQUIREMENTS.map((name) => ({ name, status: "past_due", problem: null })),
    onboardingUrl: provider.pageUrl(`/onboarding/${id}`).href,
  });

async function showOnboardingPage({ provider, id }: Call): Promise<Reply> {
  const account = await provider.store.findAccount(id);
  return account ? page(200, onboardingPage(account)) : page(404, notFoundPage());
}

/** Completes the onboarding and redirects to the page. */
async function finish({ provider, id }: Call): Promise<Reply> {
  if (!(await provider.store.enableAccount(id))) return page(404, notFoundPage());
  return redirect(provider.pageUrl(`/onboarding/${id}`).pathname);
}
