import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { until } from "../../../test/until.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** Requests a payout to an account of the test provider. */
async function payOutTo(
  account: string,
): Promise<{ seller: Client; payout: { id: string; status: string } }> {
  const seller = await market.createUser({ role: "seller" });
  const session = await market.createSession(seller.userId);
  assert.equal((await session.put("/v1/account/payout-account", { account })).status, 200);
  await bookEarnings(market, seller, { amountMinor: 5000n });
  const reply = await session.post("/v1/payouts", {});
  assert.equal(reply.status, 201, reply.text);
  return { seller, payout: reply.body.data };
}

const balanceOf = async (seller: Client) => (await seller.get("/v1/balance")).body.data[0];
const statusOf = async (seller: Client, id: string) =>
  (await seller.get(`/v1/payouts/${id}`)).body.data.status;

test("acct_test: completed", async () => {
  const { seller, payout } = await payOutTo("acct_test");
  assert.equal(payout.status, "completed");
  assert.partialDeepStrictEqual(await balanceOf(seller), { available: 0, inTransit: 0 });
});

test("acct_test_fails: failed, and the amount is available again", async () => {
  const { seller, payout } = await payOutTo("acct_test_fails");
  assert.partialDeepStrictEqual(payout, { status: "failed", failureCode: "account_closed" });
  assert.partialDeepStrictEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
});

test("acct_test_returns: returned after completion, by webhook", async (t) => {
  const { payments } = market.service.ctx.integrations;
  const { findPayout } = payments;
  // The webhook follows in 50 ms, perhaps before the response.
  const answered = Promise.withResolvers<void>();
  t.mock.method(payments, "findPayout", async (id: string) => {
    await answered.promise;
    return findPayout(id);
  });
  const { seller, payout } = await payOutTo("acct_test_returns");
  assert.equal(payout.status, "completed");
  answered.resolve();
  await until("the notice came", async () => (await statusOf(seller, payout.id)) === "returned");
  assert.partialDeepStrictEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
  const [message] = await emailsToUser(market, seller.userId);
  assert.equal(message!.subject, "Payout returned: 50.00 USD");
});

test("an unknown account: failed", async () => {
  const { seller, payout } = await payOutTo("acct_nobody");
  assert.equal(payout.status, "failed");
  assert.partialDeepStrictEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
});
