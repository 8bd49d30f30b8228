import { createHash } from "node:crypto";
import { z } from "zod";
import {
  type Call,
  type Endpoint,
  jsonReply,
  page,
  type Reply,
  readKeyed,
  redirect,
  refusal,
} from "./payments.fake-http.ts";
import { payoutAccounts } from "./payments.fake-methods.ts";
import { notFoundPage, onboardingPage } from "./payments.fake-page.ts";

const AccountRequest = z.strictObject({ ownerId: z.string() });

/** Where sellers are paid: the named accounts of everybody, and those that they set up on a page of ours. */
export const accountEndpoints: Endpoint[] = [
  ["POST", /^\/v1\/accounts$/, makeAccount],
  ["GET", /^\/v1\/accounts$/, findAccount],
  ["GET", /^\/onboarding\/([^/]+)$/, showOnboardingPage],
  ["POST", /^\/onboarding\/([^/]+)$/, finish],
];

/** The id says whose it is, as the id of an own method does. */
const accountIdOf = (ownerId: string) =>
  `acct_test_${createHash("sha256").update(ownerId).digest("hex").slice(0, 16)}`;

/** One for each owner, however often it is asked for. */
async function makeAccount(call: Call): Promise<Reply> {
  const { provider, request } = call;
  const read = await readKeyed(request, AccountRequest);
  if (!read) return refusal(400, "invalid_request");
  const { ownerId } = read.asked;
  const { id, state } = await provider.store.insertAccount({
    ...{ id: accountIdOf(ownerId), ownerId },
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

const accountReply = ({ url }: Call, id: string, payoutsEnabled: boolean): Reply =>
  jsonReply(200, { id, payoutsEnabled, onboardingUrl: new URL(`/onboarding/${id}`, url).href });

async function showOnboardingPage({ provider, id }: Call): Promise<Reply> {
  const account = await provider.store.findAccount(id);
  return account ? page(200, onboardingPage(account)) : page(404, notFoundPage());
}

/** The seller has told everything that a real provider would ask them: the page is shown anew. */
async function finish({ provider, id }: Call): Promise<Reply> {
  return (await provider.store.enableAccount(id)) ? redirect(`/onboarding/${id}`) : page(404, notFoundPage());
}
