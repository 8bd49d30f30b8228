export { chargeFee, payoutAccounts, sharedMethods } from "./methods.ts";
export { createSchema, openPostgresStore } from "./postgres-store.ts";
export { type FakeProvider, startFakeProvider } from "./server.ts";
export { signatureProblem, signWebhook } from "./signature.ts";
export { type Charge, type FakeStore, memoryStore, type Payout, type Refund } from "./store.ts";
