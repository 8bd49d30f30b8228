import { noAmountLimits, type Payments, PaymentUnknown, WebhookSignatureError } from "./payments.ts";

const unavailable = async () => {
  throw new PaymentUnknown("there is no payment provider");
};

async function* nothing(): AsyncGenerator<never> {}

/** Production without a payment provider: nothing can be bought, and no test method works. */
export const noPayments: Payments = {
  name: "none",
  limitsOf: noAmountLimits,
  charge: async () => ({ state: "unknown_method" }),
  findCharge: async () => null,
  cancelCharge: async () => null,
  refund: unavailable,
  findRefund: async () => null,
  listRefundsOf: async () => [],
  payOut: unavailable,
  findPayout: async () => null,
  findPayoutAccount: async () => null,
  onboard: unavailable,
  findDispute: async () => null,
  listCharges: nothing,
  listRefunds: nothing,
  listDisputes: nothing,
  listPayouts: nothing,
  startCardSetup: unavailable,
  findMethod: async () => null,
  detachMethod: async () => {},
  findTokenProblem: () => null,
  sharedMethods: [],
  sharedPayoutAccount: null,
  parseWebhook: async () => {
    throw new WebhookSignatureError("there is no payment provider");
  },
};
