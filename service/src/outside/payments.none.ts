import type { Payments } from "./payments.ts";

/** Production without a payment provider: nothing can be bought, and no test method buys anything for nothing. */
export const noPayments: Payments = {
  name: "none",
  charge: async () => ({ state: "unknown_method" }),
  find: async () => null,
  cancel: async () => null,
  defaultMethod: async () => null,
};
