import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { lettersToUser } from "../../test/letters.ts";
import { assertError, type Market, openMarket } from "../../test/market.ts";
import { hasBank, hasEarned } from "../../test/payouts.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/payout-account";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

test("where payouts go is the seller's to say, and they are told of it", async () => {
  const bank = hasBank(market);
  const seller = await market.hasUser({ role: "seller" });
  const session = await market.hasSession(seller.userId);
  assert.deepEqual((await session.get(PATH)).body.data, { account: "acct_test" });
  const reply = await session.put(PATH, { account: "acct_own" });
  assert.deepEqual([reply.status, reply.body.data], [200, { account: "acct_own" }]);
  assert.deepEqual((await session.get(PATH)).body.data, { account: "acct_own" });
  const [letter] = await lettersToUser(market, seller.userId);
  assert.equal(letter!.subject, "Your payouts go to another account");
  await hasEarned(market, seller, { amountMinor: 5000n });
  const { id } = (await session.post("/v1/payouts", {})).body.data;
  assert.equal(bank.paid.get(id)!.request.destination, "acct_own");
  const { rows } = await market.query(
    "select details from audit_log where action = 'payout_account.changed'",
  );
  assert.deepEqual(rows, [{ details: { from: "acct_test", to: "acct_own" } }]);
});

test("it is no key's to say, and no old session's", async () => {
  const seller = await market.hasUser({ role: "seller" });
  assert.equal(
    assertError(await seller.put(PATH, { account: "acct_eve" }), 403, "UNAUTHORIZED").required,
    "session",
  );
  const session = await market.hasSession(seller.userId);
  market.clock.forward(15 * MINUTE_MS);
  const { required } = assertError(await session.put(PATH, { account: "acct_eve" }), 403, "UNAUTHORIZED");
  assert.equal(required, "fresh-sign-in");
  assert.equal((await session.get(PATH)).body.data.account, "acct_test");
});

test("it is the id of an account", async () => {
  const session = await market.hasSession((await market.hasUser()).userId);
  for (const account of ["", "a b", "acct\n", "x".repeat(101), 1, null])
    assertError(await session.put(PATH, { account }), 400, "INVALID_REQUEST", "account");
});
