import { createHash } from "node:crypto";

interface CardSummary {
  brand: string;
  last4: string;
}

/** The result of a charge with this method; by default it succeeds, and so do its refunds. */
export interface FakeMethod extends CardSummary {
  outcome: { state: "succeeded" | "requires_action" } | { state: "declined"; declineCode: string };
  /** `never`: the charge is made without an answer or an event. */
  answers?: "never" | "after its webhook";
  webhooks?: "twice";
  refunds?: "fail" | "wait";
  /** The buyer's bank opens a dispute at once. */
  disputed?: true;
}

const succeeds = { brand: "visa", outcome: { state: "succeeded" } } as const;
const declined = (declineCode: string) =>
  ({ brand: "visa", outcome: { state: "declined", declineCode } }) as const;

/** Test methods for every customer; the name tells the result. The first is the default. */
const methods = new Map<string, FakeMethod>([
  ["pm_test_ok", { ...succeeds, last4: "4242" }],
  ["pm_test_declined", { ...declined("card_declined"), last4: "0002" }],
  ["pm_test_insufficient_funds", { ...declined("insufficient_funds"), last4: "9995" }],
  ["pm_test_requires_action", { brand: "mastercard", last4: "3155", outcome: { state: "requires_action" } }],
  ["pm_test_timeout_but_charged", { ...succeeds, last4: "0101", answers: "never" }],
  ["pm_test_duplicate_webhook", { ...succeeds, last4: "0202", webhooks: "twice" }],
  ["pm_test_webhook_before_response", { ...succeeds, last4: "0303", answers: "after its webhook" }],
  ["pm_test_refund_fails", { ...succeeds, last4: "5126", refunds: "fail" }],
  ["pm_test_refund_waits", { ...succeeds, last4: "7726", refunds: "wait" }],
  ["pm_test_dispute", { ...succeeds, last4: "0259", disputed: true }],
]);

export const sharedMethods: (CardSummary & { id: string })[] = [...methods].map(([id, { brand, last4 }]) => ({
  id,
  brand,
  last4,
}));

const OWN_ID = /^(pm_test_[a-z_]+)_([0-9a-f]{16})$/;

/** The id of a customer's own copy of a method. It contains the customer, so that nothing needs to be stored. */
export const ownMethodId = (name: string, customerId: string): string =>
  `${name}_${createHash("sha256").update(`${name} ${customerId}`).digest("hex").slice(0, 16)}`;

const nameOf = (methodId: string): string => OWN_ID.exec(methodId)?.[1] ?? methodId;

/** By name, or by the customer's own id. undefined: unknown, or another customer's. */
export function findFakeMethod(
  methodId: string,
  customerId: string,
): (FakeMethod & { name: string }) | undefined {
  const name = nameOf(methodId);
  const method = methods.get(name);
  const isTheirs = methodId === name || methodId === ownMethodId(name, customerId);
  return method && isTheirs ? { ...method, name } : undefined;
}

export const methodOfCharge = ({ methodId }: { methodId: string }): FakeMethod =>
  methods.get(nameOf(methodId))!;

/** The result of payouts by account. The first is the default. */
export const payoutAccounts = new Map<
  string,
  { state: "completed" | "in_transit" | "returned" } | { state: "failed"; failureCode: string }
>([
  ["acct_test", { state: "completed" }],
  ["acct_test_waits", { state: "in_transit" }],
  ["acct_test_fails", { state: "failed", failureCode: "account_closed" }],
  // Completed at once; afterwards the bank returns it.
  ["acct_test_returns", { state: "returned" }],
]);

const FEE_BASIS_POINTS = 290n;
const FEE_FIXED_MINOR = 30n;
/** For each dispute. */
export const DISPUTE_FEE_MINOR = 1_500n;

/** The provider's fee, at most the amount. */
export function chargeFee(amountMinor: bigint): bigint {
  const fee = (amountMinor * FEE_BASIS_POINTS + 5_000n) / 10_000n + FEE_FIXED_MINOR;
  return fee < amountMinor ? fee : amountMinor;
}
