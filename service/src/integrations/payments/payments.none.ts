import { anyAmount, NoticeRefused, type Payments, PaymentUnknown } from "./payments.ts";

const nobody = async () => {
  throw new PaymentUnknown("there is no payment provider");
};

async function* nothing(): AsyncGenerator<never> {}

/** Production without a payment provider: nothing can be bought, and no test method buys anything for nothing. */
export const noPayments: Payments = {
  name: "none",
  limitsOf: anyAmount,
  charge: async () => ({ state: "unknown_method" }),
  find: async () => null,
  cancel: async () => null,
  refund: nobody,
  findRefund: async () => null,
  listRefundsOf: async () => [],
  payOut: nobody,
  findPayout: async () => null,
  findPayoutAccount: async () => null,
  onboard: nobody,
  findDispute: async () => null,
  listCharges: nothing,
  listRefunds: nothing,
  listDisputes: nothing,
  listPayouts: nothing,
  findMethod: async () => null,
  forgetMethod: async () => {},
  whyNoMethod: () => null,
  sharedMethods: [],
  sharedPayoutAccount: null,
  readNotice: async () => {
    throw new NoticeRefused("there is no payment provider");
  },
};
