import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { bookEarnings, installFakeBank } from "../../../test/payouts.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { payOutBySchedule } from "./schedule.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/payout-account";
const HEALTHY = { payoutsEnabled: true, disabledReason: null, requirements: [], dueBy: null };

let market: Market;
/** A market whose connection to the provider may fail. */
let unreliable: Market;
let provider: FakeProvider;
const line: PaymentConnection = { trouble: "none" };
before(async () => {
  market = await openMarket();
  provider = await startFakeProvider({ store: memoryStore(), now: () => unreliable.clock.now });
  unreliable = await openMarket({
    payments: withConnectionTrouble(line, createFakePayments({ origin: provider.origin })),
  });
});
after(async () => {
  await Promise.all([market.close(), unreliable.close()]);
  await provider.close();
});

test("PUT /account/payout-account: sets the destination, with email and audit entry", async () => {
  const bank = installFakeBank(market);
  const seller = await market.createUser({ role: "seller" });
  const session = await market.createSession(seller.userId);
  assert.deepEqual((await session.get(PATH)).body.data, { account: "acct_test", ...HEALTHY });
  const reply = await session.put(PATH, { account: "acct_own" });
  assert.deepEqual([reply.status, reply.body.data], [200, { account: "acct_own", ...HEALTHY }]);
  assert.deepEqual((await session.get(PATH)).body.data, { account: "acct_own", ...HEALTHY });
  const [message] = await emailsToUser(market, seller.userId);
  assert.equal(message!.subject, "Your payout account changed");
  await bookEarnings(market, seller, { amountMinor: 5000n });
  const { id } = (await session.post("/v1/payouts", {})).body.data;
  assert.equal(bank.paid.get(id)!.request.destination, "acct_own");
  const { rows } = await market.query(
    "select details from audit_log where action = 'payout_account.changed'",
  );
  assert.deepEqual(rows, [{ details: { from: "acct_test", to: "acct_own" } }]);
});

test("PUT /account/payout-account with a key or an old session: refused", async () => {
  const seller = await market.createUser({ role: "seller" });
  assert.equal(
    assertError(await seller.put(PATH, { account: "acct_eve" }), 403, "UNAUTHORIZED").required,
    "session",
  );
  const session = await market.createSession(seller.userId);
  market.clock.forward(15 * MINUTE_MS);
  const { required } = assertError(await session.put(PATH, { account: "acct_eve" }), 403, "UNAUTHORIZED");
  assert.equal(required, "fresh-sign-in");
  assert.equal((await session.get(PATH)).body.data.account, "acct_test");
});

test("PUT /account/payout-account with an invalid account id: 400", async () => {
  const session = await market.createSession((await market.createUser()).userId);
  for (const account of ["", "a b", "acct\n", "x".repeat(101), 1, null])
    assertError(await session.put(PATH, { account }), 400, "INVALID_REQUEST", "account");
});

suite("POST /account/payout-account/onboarding", () => {
  const readAccount = async (session: Client) => (await session.get(PATH)).body.data;
  const finish = async (url: string) => (await fetch(url, { method: "POST", redirect: "manual" })).status;

  /** A seller with earnings and an open onboarding page. */
  async function startOnboarding() {
    const seller = await unreliable.createUser({ role: "seller" });
    const session = await unreliable.createSession(seller.userId);
    await bookEarnings(unreliable, seller, { amountMinor: 5000n });
    const replies = await Promise.all(
      Array.from({ length: runs(20) }, () => session.post(`${PATH}/onboarding`)),
    );
    const reply = replies[0]!;
    assert.equal(reply.status, 200, reply.text);
    assert.equal(new Set(replies.map(({ body }) => body.data.account)).size, 1);
    return { seller, session, ...(reply.body.data as { account: string; url: string }) };
  }

  test("opens one account, usable once its page is completed, with one email", async () => {
    const { seller, session, account, url } = await startOnboarding();
    assert.deepEqual(await readAccount(session), {
      ...{ account, payoutsEnabled: false, disabledReason: "requirements.past_due", dueBy: null },
      requirements: ["individual.verification.document", "external_account"].map((name) => ({
        ...{ name, status: "past_due", problem: null },
      })),
    });
    const again = await Promise.all(Array.from({ length: 5 }, () => session.post(`${PATH}/onboarding`)));
    assert.deepEqual(new Set(again.map(({ body }) => body.data.account)), new Set([account]));
    assert.match(await (await fetch(url)).text(), /Finish<\/button>/);
    assert.equal(await finish(url), 303);
    assert.match(await (await fetch(url)).text(), /<h1>Your payouts are set up/);
    assert.deepEqual(await readAccount(session), { account, ...HEALTHY });
    assert.equal((await session.post("/v1/payouts", {})).body.data.status, "completed");
    const subjects = (await emailsToUser(unreliable, seller.userId)).map(({ subject }) => subject);
    assert.deepEqual(subjects, ["Paid out: 50.00 USD", "Your payout account changed"]);
  });

  test("before completion: no payout by request or schedule", async () => {
    const { seller, session, url } = await startOnboarding();
    assertError(await session.post("/v1/payouts", {}), 422, "VALIDATION_ERROR", "account");
    const runSchedule = () => payOutBySchedule(unreliable.service.ctx, "daily");
    await runSchedule();
    unreliable.clock.forward(24 * 60 * MINUTE_MS);
    await runSchedule();
    assert.deepEqual((await seller.get("/v1/payouts")).body.data, []);
    assert.equal((await seller.get("/v1/balance")).body.data[0].available, 50);
    await finish(url);
    unreliable.clock.forward(24 * 60 * MINUTE_MS);
    await runSchedule();
    assert.equal((await seller.get("/v1/payouts")).body.data[0].status, "completed");
  });

  test("key or old session: refused; provider unavailable: 503, and other payouts continue", async () => {
    const seller = await unreliable.createUser({ role: "seller" });
    const session = await unreliable.createSession(seller.userId);
    await bookEarnings(unreliable, seller, { amountMinor: 5000n });
    assert.equal(
      assertError(await seller.post(`${PATH}/onboarding`), 403, "UNAUTHORIZED").required,
      "session",
    );
    line.trouble = "down";
    assertError(await session.post(`${PATH}/onboarding`), 503, "SERVICE_UNAVAILABLE");
    assert.deepEqual(await readAccount(session), {
      ...{ account: "acct_test", ...HEALTHY, payoutsEnabled: null },
    });
    assert.equal((await session.post("/v1/payouts", {})).body.data.status, "pending");
    line.trouble = "none";
    unreliable.clock.forward(15 * MINUTE_MS);
    const { required } = assertError(await session.post(`${PATH}/onboarding`), 403, "UNAUTHORIZED");
    assert.equal(required, "fresh-sign-in");
  });

  test("an unknown account: has no page", async () => {
    assert.equal(await finish(`${provider.origin}/onboarding/acct_nobody`), 404);
    assert.equal((await fetch(`${provider.origin}/onboarding/acct_nobody`)).status, 404);
  });
});
