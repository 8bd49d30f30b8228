import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, QueryCurrency, Timestamp } from "../core/envelope.ts";

export const payoutStatuses = ["pending", "in_transit", "completed", "failed", "returned"] as const;

const reads = { who: "member", permission: "purchases:read", rolePermission: "manage:products" } as const;

const Signed = z.number().describe("In the unit of the currency, with its decimals; may be negative");

export const Balance = z
  .object({
    currency: Currency,
    pending: Signed.describe("Earned, not matured yet"),
    available: Signed.describe(
      "What can be paid out now. Negative after refunds and disputes of paid-out sales; later sales repay it first",
    ),
    reserved: Amount.describe("Matured, but held for open refunds and disputes; not a part of `available`"),
    inTransit: Signed.describe("In payouts that have not ended"),
    minimum: Amount.describe("The minimum of a payout"),
    nextMaturity: z
      .object({ amount: Signed, at: Timestamp })
      .nullable()
      .describe("What becomes available next, and when; null: nothing is pending"),
  })
  .meta({ id: "Balance" });

export const Payout = z
  .object({
    id: z.string(),
    sellerId: z.string(),
    status: z
      .enum(payoutStatuses)
      .describe(
        "pending: the provider has not answered, or the marketplace's balance there is too small. in_transit: on its way to the bank. failed, returned: the amount is part of the balance again",
      ),
    amount: Amount,
    currency: Currency,
    period: z
      .object({ start: z.iso.date(), end: z.iso.date() })
      .describe(
        "UTC days. It begins on the day after the last payout's end, or on the day of your first entry. It ends on the last day on which a paid entry matured. No day is in two periods",
      ),
    failureCode: z
      .string()
      .nullable()
      .describe(
        "Why the provider or the bank did not pay it; `seller_banned`: you were banned before the provider was asked",
      ),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable().describe(
      "When it was paid, even if it came back later; null: not yet, or never",
    ),
  })
  .meta({ id: "Payout" });

export const PayoutDetail = Payout.extend({
  statement: z
    .object({
      opening: Signed.describe("Matured and not paid out before, with what is reserved"),
      added: Signed.describe(
        "The sum of the items: what matured, came back or was taken since the last payout",
      ),
      closing: Signed.describe("opening + added − amount: what the payout left"),
    })
    .describe("Equal to the ledger when the payout was created"),
}).meta({ id: "PayoutDetail" });

export const payoutItemKinds = [
  "sale",
  "refund",
  "dispute_opened",
  "dispute_won",
  "dispute_lost",
  "payout_failed",
  "payout_returned",
] as const;

export const PayoutItem = z
  .object({
    kind: z
      .enum(payoutItemKinds)
      .describe(
        "payout_failed, payout_returned: the amount of an earlier payout that came back. New values may be added",
      ),
    share: z.enum(["earnings", "commission"]).describe("As the seller, or as the referrer of a sale"),
    amount: Signed,
    currency: Currency,
    orderId: z.string().nullable(),
    product: z.object({ id: z.string(), title: z.string() }).nullable(),
    occurredAt: Timestamp.describe("When it was booked"),
    at: Timestamp.describe("From when it could be paid out, or had to be repaid"),
  })
  .meta({ id: "PayoutItem", description: "A ledger entry that a payout paid, or took into account." });

export const Maturity = z
  .object({
    date: z.iso.date().describe("The UTC day"),
    amount: Signed,
    currency: Currency,
    sales: z.int().describe("Number of purchases"),
  })
  .meta({ id: "Maturity", description: "What becomes available on one day." });

export const AdminPayout = Payout.extend({
  seller: z.object({ id: z.string(), name: z.string() }),
  account: z.string().describe("The seller's account at the payment provider"),
  providerPayoutId: z.string().nullable(),
  scheduled: z.boolean().describe("false: the seller requested it"),
  waitsFor: z
    .string()
    .nullable()
    .describe(
      "Why the payment provider cannot pay it yet: balance_insufficient is the marketplace's own balance there. The service tries again each hour",
    ),
  reversedAmount: Amount.describe(
    "The part that the provider took back. It is not booked until all is taken back there",
  ),
}).meta({ id: "AdminPayout" });

export const CreatePayout = z
  .strictObject({
    currency: Currency.optional().describe(
      "Default: the only currency with a balance, else the marketplace's",
    ),
    amount: z.number().positive("must be positive").optional().describe("Default: all that is available"),
  })
  .meta({ id: "CreatePayout" });

export const PayoutAccount = z
  .object({
    account: z.string().nullable().describe("At the payment provider; null: create one first, or name one"),
    payoutsEnabled: z
      .boolean()
      .nullable()
      .describe(
        "Whether payouts arrive there; null: the payment provider does not answer now, or does not know the account",
      ),
    disabledReason: z
      .string()
      .nullable()
      .describe(
        "The payment provider's code for why nothing is paid out; null: it is, or no reason is known",
      ),
    requirements: z
      .array(
        z.object({
          name: z.string().describe("The payment provider's name, such as `external_account`"),
          status: z
            .enum(["due", "past_due", "in_review"])
            .describe("past_due: payouts are refused because of it; in_review: the provider checks it"),
          problem: z.string().nullable().describe("Why the provider refused what you gave; null: it did not"),
        }),
      )
      .describe(
        "What the provider needs: POST /account/payout-account/onboarding returns the page to complete it",
      ),
    dueBy: Timestamp.nullable().describe("Payouts are refused from then on unless what is due is completed"),
  })
  .meta({ id: "PayoutAccount" });

export const Onboarding = z
  .object({
    account: z.string().describe("The destination of later payouts"),
    url: z
      .url()
      .describe("The payment provider's page, for one visit; request another one when you come back"),
  })
  .meta({ id: "Onboarding" });

export const SetPayoutAccount = z
  .strictObject({
    account: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,100}$/, "must be the id of an account, such as acct_1Nv0FGQ9RKHgCVdK"),
  })
  .meta({ id: "SetPayoutAccount" });

export type PayoutAccount = z.input<typeof PayoutAccount>;
export type Onboarding = z.input<typeof Onboarding>;
export type SetPayoutAccount = z.output<typeof SetPayoutAccount>;
export type Balance = z.input<typeof Balance>;
export type Payout = z.input<typeof Payout>;
export type PayoutDetail = z.input<typeof PayoutDetail>;
export type PayoutItem = z.input<typeof PayoutItem>;
export type Maturity = z.input<typeof Maturity>;
export type AdminPayout = z.input<typeof AdminPayout>;
export type CreatePayout = z.output<typeof CreatePayout>;
export type PayoutStatus = (typeof payoutStatuses)[number];

const ofPayout = z.object({ payoutId: z.string() });
const filters = { status: filter(z.enum(payoutStatuses)), currency: filter(QueryCurrency) };

export const balance = endpoint({
  name: "balance.get",
  method: "GET",
  path: "/balance",
  tag: "payouts",
  summary: "Read your balance by currency",
  description:
    "Sales and referrals together. Earnings mature after 7 days or the refund window, whichever is longer.",
  access: reads,
  query: z.strictObject(paging),
  response: listOf(Balance),
});

export const maturities = endpoint({
  name: "balance.maturities",
  method: "GET",
  path: "/balance/maturities",
  tag: "payouts",
  summary: "List what becomes available on which day, the next day first",
  description: "The sum of a currency is `pending` of GET /balance.",
  access: reads,
  query: z.strictObject({ ...paging, currency: filter(QueryCurrency) }),
  response: listOf(Maturity),
});

export const list = endpoint({
  name: "payouts.list",
  method: "GET",
  path: "/payouts",
  summary: "List your payouts, newest first",
  access: reads,
  query: z.strictObject({ ...paging, ...filters }),
  response: listOf(Payout),
});

export const get = endpoint({
  name: "payouts.get",
  method: "GET",
  path: "/payouts/:payoutId",
  summary: "Read one payout",
  access: reads,
  params: ofPayout,
  response: one(PayoutDetail),
  errors: ["PAYOUT_NOT_FOUND"],
});

export const items = endpoint({
  name: "payouts.items",
  method: "GET",
  path: "/payouts/:payoutId/items",
  summary: "List the ledger entries of a payout, oldest first",
  description: "What matured, came back or was taken since the last payout in this currency.",
  access: reads,
  params: ofPayout,
  query: z.strictObject(paging),
  response: listOf(PayoutItem),
  errors: ["PAYOUT_NOT_FOUND"],
});

export const statement = endpoint({
  name: "payouts.statement",
  method: "GET",
  path: "/payouts/:payoutId/statement",
  summary: "Download the statement of a payout",
  description:
    "Equal to the ledger to the cent: opening balance, items, payout, closing balance. The CSV has a line for each ledger entry, the PDF one for each product.",
  access: reads,
  params: ofPayout,
  query: z.strictObject({ format: z.enum(["pdf", "csv"]).default("pdf") }),
  response: { kind: "file", types: ["application/pdf", "text/csv"] },
  errors: ["PAYOUT_NOT_FOUND"],
});

export const create = endpoint({
  name: "payouts.create",
  method: "POST",
  path: "/payouts",
  summary: "Request a payout of the available amount",
  description:
    "One at a time in each currency: while one is open, 409 CONFLICT names it. A payout that fails or comes back makes its amount available again at once. 422: less than the minimum of GET /balance, more than is available, or no payout account that is set up.",
  access: { who: "session", rolePermission: "manage:products" },
  request: json(CreatePayout, { currency: "USD", amount: 25 }),
  response: created(Payout),
  errors: ["CONFLICT", "VALIDATION_ERROR"],
});

export const account = endpoint({
  name: "payouts.account.get",
  method: "GET",
  path: "/account/payout-account",
  summary: "Read your payout account",
  access: { who: "session" },
  response: one(PayoutAccount),
});

export const setAccount = endpoint({
  name: "payouts.account.set",
  method: "PUT",
  path: "/account/payout-account",
  summary: "Set your payout account",
  description:
    "The seller gets an email. In the test environment acct_test pays, acct_test_fails fails, acct_test_waits stays in transit, and acct_test_returns sends the money back.",
  access: { who: "session" },
  requiresFreshSignIn: true,
  request: json(SetPayoutAccount, { account: "acct_test" }),
  response: one(PayoutAccount),
});

export const onboard = endpoint({
  name: "payouts.account.onboard",
  method: "POST",
  path: "/account/payout-account/onboarding",
  summary: "Set up a payout account",
  description:
    "Creates an account for you at the payment provider, once, and returns its page for your identity and bank account. Until that is complete, payouts are refused. The seller gets an email.",
  access: { who: "session" },
  requiresFreshSignIn: true,
  response: one(Onboarding),
});

export const all = endpoint({
  name: "admin.payouts.list",
  method: "GET",
  path: "/admin/payouts",
  summary: "List the payouts of all sellers, newest first",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    ...filters,
    sellerId: z.string().max(100).optional().describe("The id of the seller"),
  }),
  response: listOf(AdminPayout),
});
