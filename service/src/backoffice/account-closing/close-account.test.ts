import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { enableTwoFactor } from "../../../test/authenticator.ts";
import { dumpDatabase } from "../../../test/dump.ts";
import { emailsTo, unwrapLines } from "../../../test/emails.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { createOAuthClient, requestTokens } from "../../../test/oauth.ts";
import { bookEarnings, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { until } from "../../../test/until.ts";
import { anonymizeAccount, lockAccountForClosing } from "../../accounts/people/accounts.ts";
import { createUser } from "../../accounts/people/users.ts";
import { flushRequestLog } from "../../accounts/request-logs/request-log.ts";
import { mintOneTimeToken } from "../../accounts/sign-in/one-time-tokens.ts";
import { deleteLastAddresses } from "../../commerce/payouts/account-closing.ts";
import { payOutBySchedule } from "../../commerce/payouts/schedule.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";

const MINUTE_MS = 60_000;

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

interface Person {
  key: Client;
  session: Client;
  email: string;
}

async function hasPerson(name = "Somebody"): Promise<Person> {
  const key = await market.createUser({ name });
  const session = await market.createSession(key.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  return { key, session, email };
}

const close = ({ session }: Pick<Person, "session">, confirm: string) =>
  session.request("DELETE", "/v1/account", { json: { confirm } });
const isOpen = async ({ key }: Person) => (await key.get("/v1/account")).status === 200;

/** Runs the bought product once, so that the history has a text to erase. */
async function hasRun(who: Client, productId: string): Promise<string> {
  const run = { productId, apiKeyId: "sandbox", variables: { topic: "VARIABLEMARK" } };
  const reply = await who.post("/v1/ai/execute", run, { "idempotency-key": `run ${productId}` });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data.executionId;
}

suite("DELETE /account", () => {
  test("requires the account's address, in any case", async () => {
    const person = await hasPerson();
    for (const confirm of ["", "eve@example.com", `x${person.email}`])
      assertError(await close(person, confirm), 422, "VALIDATION_ERROR", "confirm");
    assertError(await person.session.delete("/v1/account"), 400, "INVALID_REQUEST", "confirm");
    assert.ok(await isOpen(person));
    assert.equal((await close(person, ` ${person.email.toUpperCase()} `)).status, 200);
    assert.equal(await isOpen(person), false);
  });

  test("requires a sign-in of the last 15 minutes", async () => {
    const person = await hasPerson();
    market.clock.forward(15 * MINUTE_MS);
    const details = assertError(await close(person, person.email), 403, "UNAUTHORIZED");
    assert.equal(details.required, "fresh-sign-in");
    assert.ok(await isOpen(person));
    const fresh = { session: await market.createSession(person.key.userId) };
    market.clock.forward(15 * MINUTE_MS - 1);
    assert.equal((await close(fresh, person.email)).status, 200);
  });

  test("an API key: refused", async () => {
    const person = await hasPerson();
    const reply = await person.key.request("DELETE", "/v1/account", { json: { confirm: person.email } });
    assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "session");
  });

  test("ends every credential at once and clears the cookie", async () => {
    const person = await hasPerson();
    const elsewhere = await market.createSession(person.key.userId);
    const reply = await close(person, person.email);
    assert.deepEqual(reply.body.data, {
      id: toId("usr", person.key.userId),
      closed: true,
      closedAt: market.clock.now.toISOString(),
    });
    assert.match(reply.headers.get("set-cookie")!, /^__Host-session=; Max-Age=0/);
    for (const client of [person.key, person.session, elsewhere])
      assertError(await client.get("/v1/account"), 401, "INVALID_API_KEY");
  });

  test("unpublishes products with an event; buyers keep them", async () => {
    const [person, buyer] = [await hasPerson("Leaver"), await hasPerson("Buyer")];
    const [published, draft] = [await createProduct(person.key), await createDraft(person.key)];
    const orderId = await buyProduct(buyer.key, published);
    assert.equal((await close(person, person.email)).status, 200);
    assertError(await (await market.createUser()).get(`/v1/products/${published}`), 404, "PRODUCT_NOT_FOUND");
    const { status, author, content } = (await buyer.key.get(`/v1/products/${published}`)).body.data;
    assert.deepEqual([status, author.name, author.bio], ["unpublished", "Closed account", ""]);
    assert.ok(content);
    assert.ok(await hasRun(buyer.key, published));
    const bought = (await buyer.key.get(`/v1/purchases/${orderId}`)).body.data;
    assert.equal((await market.as(null).get(bought.downloadUrl)).status, 200);
    const { rows } = await market.query("select status from products where author_id = $1 order by id", [
      person.key.userId,
    ]);
    assert.deepEqual(
      rows.map((row) => row.status),
      ["unpublished", "draft"],
    );
    const events = await market.query("select type from event_recipients where user_id = $1", [
      person.key.userId,
    ]);
    assert.ok(events.rows.some(({ type }) => type === "product.unpublished"));
    assert.ok(draft);
  });

  test("not even an administrator can publish its products again", async () => {
    const person = await hasPerson();
    const published = await createProduct(person.key);
    await close(person, person.email);
    const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
      secondFactor: true,
    });
    assertError(await admin.post(`/v1/products/${published}/publish`), 409, "INVALID_STATE");
  });

  test("receipts as buyer and seller stay unchanged", async () => {
    const [person, other] = [await hasPerson("Leaving Person"), await hasPerson("Staying Person")];
    const sold = await buyProduct(other.key, await createProduct(person.key));
    const bought = await buyProduct(person.key, await createProduct(other.key));
    const links = [
      (await person.key.get(`/v1/purchases/${bought}`)).body.data.receipt,
      (await other.key.get(`/v1/purchases/${sold}`)).body.data.receipt,
    ];
    await close(person, person.email);
    for (const { url, pdf } of links) {
      const page = await market.as(null).get(url);
      assert.equal(page.status, 200);
      assert.match(page.text, /Leaving Person/);
      assert.match(page.text, /Staying Person/);
      assert.equal((await market.as(null).get(pdf)).status, 200);
    }
  });

  test("reviews stay, without a name", async () => {
    const [person, seller] = [await hasPerson(), await market.createUser()];
    const productId = await createProduct(seller);
    await buyProduct(person.key, productId);
    await person.key.post(`/v1/products/${productId}/reviews`, { rating: 5, comment: "Good." });
    await close(person, person.email);
    const [review] = (await seller.get(`/v1/products/${productId}/reviews`)).body.data;
    assert.deepEqual([review.author.name, review.comment], ["Closed account", "Good."]);
    const { rating, reviews } = (await seller.get(`/v1/products/${productId}`)).body.data.stats;
    assert.deepEqual([rating, reviews], [5, 1], "and it counts as before");
  });

  test("sends an email to the old address", async () => {
    const person = await hasPerson();
    await close(person, person.email);
    const { vault } = market.service.ctx;
    const { rows } = await market.query("select id, sealed_email from emails where recipient = $1", [
      person.email,
    ]);
    assert.equal(rows.length, 1);
    const { subject, text } = JSON.parse(vault.open(rows[0].sealed_email, `mail|${rows[0].id}`));
    assert.match(subject, /closed/);
    assert.match(text, /can register again/);
  });

  test("the address is free: a new registration is another user", async () => {
    const person = await hasPerson();
    await close(person, person.email);
    const { ctx } = market.service;
    const again = await createUser(ctx, { email: person.email, name: "Again" });
    assert.notEqual(again, person.key.userId);
    const session = await market.createSession(again);
    assert.deepEqual((await session.get("/v1/purchases")).body.data, []);
    await close({ session }, person.email);
    assert.ok(await createUser(ctx, { email: person.email, name: "Once more" }));
  });

  test("is in the audit log", async () => {
    const person = await hasPerson();
    await close(person, person.email);
    const { rows } = await market.query("select action, ip, details from audit_log where actor_id = $1", [
      person.key.userId,
    ]);
    assert.deepEqual(rows, [{ action: "account.closed", ip: "127.0.0.1", details: {} }]);
  });

  test("the last administrator: refused", async () => {
    await market.query("update users set role = 'seller' where role = 'admin'");
    const person = await hasPerson();
    await market.query("update users set role = 'admin' where id = $1", [person.key.userId]);
    assertError(await close(person, person.email), 409, "INVALID_STATE");
    const second = await market.createUser({ role: "admin" });
    assert.equal((await close(person, person.email)).status, 200);
    assert.ok(second);
  });

  test("parallel requests: one succeeds", async () => {
    const person = await hasPerson();
    const others = await Promise.all(
      Array.from({ length: 4 }, async () => ({ session: await market.createSession(person.key.userId) })),
    );
    const replies = await Promise.all([person, ...others].map((one) => close(one, person.email)));
    const statuses = replies.map(({ status }) => status).sort();
    assert.equal(statuses.filter((status) => status === 200).length, 1, String(statuses));
  });
});

suite("a request that came in before its account closed", () => {
  /** Starts the request while the closing transaction is open, so that it continues after the account is closed. */
  async function duringClosing({ key }: Person, request: () => Promise<Reply>): Promise<Reply> {
    const { ctx } = market.service;
    const { reply } = await ctx.db.transaction().execute(async (tx) => {
      await anonymizeAccount(ctx, tx, await lockAccountForClosing(tx, key.userId));
      const reply = request();
      await waitForBlockedStatements(market);
      return { reply };
    });
    return reply;
  }

  const post = (who: "key" | "session", path: string, json: object) => (person: Person) =>
    person[who].post(path, json);
  const rights = { "products:read": true };
  const client = {
    name: "App",
    redirectUris: ["https://app.example/back"],
    grantTypes: ["authorization_code"],
    scopes: ["products:read"],
  };
  const providerKey = {
    provider: "ollama",
    name: "Mine",
    key: "sk-0123456789",
    baseUrl: "http://127.0.0.1:9",
  };

  for (const [what, request, table] of [
    ["makes no key", post("session", "/v1/api-keys", { name: "Late", permissions: rights }), "api_keys"],
    ["makes no OAuth client", post("session", "/v1/oauth-clients", client), "oauth_clients"],
    ["sets up no second factor", post("session", "/v1/account/two-factor", {}), "authenticators"],
    ["leaves no key of a provider", post("key", "/v1/ai/keys", providerKey), "provider_keys"],
    [
      "pays for no plan",
      ({ session }: Person) => session.put("/v1/account/subscription", { plan: "pro" }),
      "subscription_payments",
    ],
  ] as const) {
    test(`${what}: 401`, async () => {
      const person = await hasPerson();
      const known = await countOf(table);
      assertError(await duringClosing(person, () => request(person)), 401, "INVALID_API_KEY");
      assert.equal(await countOf(table), known);
    });
  }

  test("rotates no key: 401", async () => {
    const person = await hasPerson();
    const input = { name: "Old", permissions: rights };
    const { id } = (await person.session.post("/v1/api-keys", input)).body.data;
    const rotate = () => person.session.post(`/v1/api-keys/${id}/rotate`, {});
    assertError(await duringClosing(person, rotate), 401, "INVALID_API_KEY");
    const { rows } = await market.query("select from api_keys where user_id = $1", [person.key.userId]);
    assert.equal(rows.length, 2, "the test's own and the old one");
  });

  test("restores no name: 401", async () => {
    const person = await hasPerson();
    const rename = () => person.session.patch("/v1/account", { name: "Here again" });
    assertError(await duringClosing(person, rename), 401, "INVALID_API_KEY");
    const { rows } = await market.query("select name from users where id = $1", [person.key.userId]);
    assert.deepEqual(rows, [{ name: "Closed account" }]);
  });

  const countOf = async (table: string) => (await market.query(`select from ${table}`)).rowCount;
});

suite("an account with undecided payments", () => {
  const hasWaiting = async (buyer: Client, productId: string): Promise<{ orderId: string; url: string }> => {
    const input = { productId, paymentMethodId: "pm_test_requires_action" };
    const { orderId, nextAction } = (await buyer.post("/v1/purchases", input)).body.data;
    return { orderId, url: nextAction.url };
  };

  test("a payout in progress: refused; afterwards closed, without further emails", async () => {
    const bank = installFakeBank(market);
    bank.begins = "in_transit";
    const seller = await hasPerson();
    await createProduct(seller.key);
    await bookEarnings(market, seller.key, { amountMinor: 5000n });
    const { id } = (await requestPayout(market, seller.key)).body.data;
    const details = assertError(await close(seller, seller.email), 409, "INVALID_STATE");
    assert.deepEqual([details.current, details.payoutId], ["money_open", id]);
    await bank.moves(id, "completed");
    assert.equal((await close(seller, seller.email)).status, 200);
    const count = async () => (await market.query("select from emails")).rowCount;
    const written = await count();
    await bank.moves(id, "returned");
    assert.equal(await count(), written);
  });

  test("a refund as buyer or seller: refused until it settles", async () => {
    const [seller, buyer] = [await hasPerson(), await hasPerson()];
    const { orderId, url } = await hasWaiting(buyer.key, await createProduct(seller.key));
    const buyers = assertError(await close(buyer, buyer.email), 409, "INVALID_STATE");
    assert.deepEqual([buyers.current, buyers.openPurchases, buyers.openSales], ["money_open", 1, 0]);
    const sellers = assertError(await close(seller, seller.email), 409, "INVALID_STATE");
    assert.deepEqual([sellers.openPurchases, sellers.openSales], [0, 1]);
    assert.ok((await isOpen(seller)) && (await isOpen(buyer)));
    await fetch(url, {
      method: "POST",
      body: new URLSearchParams({ decision: "decline" }),
      redirect: "manual",
    });
    await buyer.key.get(`/v1/purchases/${orderId}`);
    assert.equal((await close(buyer, buyer.email)).status, 200);
    assert.equal((await close(seller, seller.email)).status, 200);
  });

  test("a plan payment: refused until it settles or is canceled", async () => {
    const person = await hasPerson();
    const choose = (input: object) => person.session.put("/v1/account/subscription", input);
    const waiting = await choose({ plan: "pro", paymentMethodId: "pm_test_requires_action" });
    assert.equal(waiting.status, 202, waiting.text);
    assertError(await close(person, person.email), 409, "INVALID_STATE");
    assert.equal((await choose({ plan: "free" })).status, 200);
    assert.equal((await close(person, person.email)).status, 200);
  });
});

suite("an account with a balance", () => {
  const daily = () => payOutBySchedule(market.service.ctx, "daily");
  const closeWith = ({ session, email }: Person, input: object = {}) =>
    session.request("DELETE", "/v1/account", { json: { confirm: email, ...input } });
  const payoutsTo = async ({ key }: Person) =>
    (
      await market.query("select status, amount_minor from payouts where seller_id = $1 order by id", [
        key.userId,
      ])
    ).rows;
  /** A seller with one sale at each price. */
  async function hasSeller(...prices: number[]): Promise<Person> {
    const person = await hasPerson();
    for (const price of prices)
      await buyProduct(await market.createUser(), await createProduct(person.key, { price }));
    return person;
  }
  /** Replaces settings or integrations during `work`. */
  async function withReplaced<T>(target: object, change: object, work: () => Promise<T>): Promise<T> {
    const before = { ...target };
    Object.assign(target, change);
    return work().finally(() => Object.assign(target, before));
  }

  test("closed: the email names the amount, which is paid as it matures, also below the minimum", async () => {
    const bank = installFakeBank(market);
    const person = await hasSeller(20);
    market.clock.forward(14 * DAY_MS);
    await buyProduct(await market.createUser(), await createProduct(person.key, { price: 5 }));
    await daily();
    person.session = await market.createSession(person.key.userId);
    const reply = await closeWith(person);
    assert.deepEqual(reply.body.data?.toBePaid, [{ currency: "USD", amount: 22.5 }], reply.text);
    const [closingEmail] = await emailsTo(market, person.email);
    assert.match(unwrapLines(closingEmail!.text), /22\.50 USD is still yours: it is paid out to acct_test/);
    market.clock.forward(DAY_MS);
    await daily();
    assert.deepEqual(await payoutsTo(person), [{ status: "completed", amount_minor: 1800 }]);
    market.clock.forward(14 * DAY_MS);
    bank.begins = "failed";
    await daily();
    market.clock.forward(DAY_MS);
    bank.begins = "completed";
    await daily();
    assert.deepEqual((await payoutsTo(person)).slice(1), [
      { status: "failed", amount_minor: 450 },
      { status: "completed", amount_minor: 450 },
    ]);
    assert.deepEqual(
      (await emailsTo(market, person.email)).map(({ subject }) => subject),
      ["Paid out: 4.50 USD", "Payout failed: 4.50 USD", "Paid out: 18.00 USD", "Your Stoa account is closed"],
    );
  });

  test("paid out completely, with nothing refundable left: the address is erased", async () => {
    const bank = installFakeBank(market);
    const person = await hasSeller(20);
    assert.equal((await closeWith(person)).status, 200);
    const isRetained = async () => {
      await deleteLastAddresses(market.service.ctx);
      return (
        (await market.query("select from closed_account_emails where email = $1", [person.email]))
          .rowCount === 1
      );
    };
    assert.ok(await isRetained());
    market.clock.forward(15 * DAY_MS);
    bank.begins = "in_transit";
    await daily();
    assert.ok(await isRetained(), "a payout is on its way");
    for (const { request, state } of bank.paid.values())
      if (state === "in_transit") await bank.moves(request.payoutId, "completed");
    assert.ok(await isRetained(), "it may come back");
    market.clock.forward(14 * DAY_MS + 1);
    assert.equal(await isRetained(), false);
  });

  test("a debt larger than pending sales: refused until later sales cover it", async () => {
    const person = await hasSeller(20);
    await bookEarnings(market, person.key, { amountMinor: -2500n });
    const details = assertError(await closeWith(person), 409, "INVALID_STATE");
    assert.deepEqual([details.current, details.balances], ["money_owed", [{ currency: "USD", amount: -7 }]]);
    assertError(await closeWith(person, { giveUpBalance: true }), 409, "INVALID_STATE");
    assert.ok(await isOpen(person));
    await bookEarnings(market, person.key, { amountMinor: 700n });
    const closed = await closeWith(person);
    assert.deepEqual([closed.status, closed.body.data?.toBePaid], [200, undefined], closed.text);
  });

  test("no payout account: refused unless the user gives the balance up", async () => {
    const person = await hasSeller(20);
    const { integrations } = market.service.ctx;
    const nowhere = { payments: { ...integrations.payments, sharedPayoutAccount: null } };
    await withReplaced(integrations, nowhere, async () => {
      const refused = await closeWith(person);
      const details = assertError(refused, 409, "INVALID_STATE");
      assert.deepEqual(
        [details.current, details.balances],
        ["money_left", [{ currency: "USD", amount: 18 }]],
      );
      assert.match(refused.text, /payout-account.*giveUpBalance/);
      assertError(await closeWith(person, { giveUpBalance: "yes" }), 400, "INVALID_REQUEST", "giveUpBalance");
      const closed = await closeWith(person, { giveUpBalance: true });
      assert.deepEqual([closed.status, closed.body.data?.toBePaid], [200, undefined], closed.text);
    });
    assert.equal(
      (await market.query("select from closed_account_emails where email = $1", [person.email])).rowCount,
      0,
    );
  });

  test("a payout account that is not set up: refused", async () => {
    const person = await hasSeller(20);
    const { integrations } = market.service.ctx;
    const unfinished = async () => ({
      ...{ payoutsEnabled: false, disabledReason: null, requirements: [], dueBy: null },
    });
    const payments = { ...integrations.payments, findPayoutAccount: unfinished };
    await withReplaced(integrations, { payments }, async () => {
      const refused = await closeWith(person);
      assert.equal(assertError(refused, 409, "INVALID_STATE").current, "money_left");
      assert.match(refused.text, /onboarding/);
    });
    assert.equal((await closeWith(person)).status, 200);
  });

  test("no payout schedule: refused", async () => {
    const person = await hasSeller(20);
    await withReplaced(market.service.ctx.config, { payoutSchedule: null }, async () => {
      const refused = await closeWith(person);
      assert.equal(assertError(refused, 409, "INVALID_STATE").current, "money_left");
      assert.match(refused.text, /POST \/payouts/);
    });
    assert.equal((await closeWith(person)).status, 200);
  });

  test("twenty parallel payout requests: closed with none open, or not closed", async () => {
    const bank = installFakeBank(market);
    const person = await hasSeller(200);
    market.clock.forward(14 * DAY_MS);
    person.session = await market.createSession(person.key.userId);
    bank.begins = "in_transit";
    const requests = Array.from({ length: 20 }, () => person.session.post("/v1/payouts", { amount: 10 }));
    const [closed, ...payouts] = await Promise.all([closeWith(person), ...requests]);
    const open = await payoutsTo(person);
    assert.equal(open.length, payouts.filter(({ status }) => status === 201).length);
    assert.equal(open.length === 0, closed.status === 200, closed.text);
  });
});

suite("after an account was closed", () => {
  /** Tables that reference users and have no row of a closed account … */
  const ERASED = [
    "account_views",
    "api_keys",
    "authenticators",
    "evaluations",
    "execution_shares",
    "oauth_clients",
    "oauth_grants",
    "oauth_tokens",
    "identities",
    "imported_names",
    "notification_preferences",
    "notifications",
    "one_time_tokens",
    "payment_methods",
    "request_logs",
    "sessions",
    "subscriptions",
    "wishlist_entries",
    "workflow_runs",
  ];
  /** … and those that stay, for the ledger, buyers and history. A test below checks their personal data. */
  const RETAINED = [
    "author_daily_views",
    "discount_codes",
    "entitlements",
    "event_recipients",
    "executions",
    "closed_account_emails",
    "ledger_entries",
    "orders",
    "payment_customers",
    "payouts",
    "product_reports",
    "products",
    "provider_keys",
    "receipt_counters",
    "referral_codes",
    "refunds",
    "review_reports",
    "reviews",
    "run_totals",
    "subscription_payments",
    "unfolded_runs",
    "webhook_endpoints",
  ];

  async function tablesOfPeople(): Promise<{ table: string; columns: string[] }[]> {
    const { rows } = await market.query(
      `select conrelid::regclass::text as table, array_agg(distinct attname::text) as columns
         from pg_constraint join pg_attribute on attrelid = conrelid and attnum = any (conkey)
        where contype = 'f' and confrelid = 'users'::regclass group by 1 order by 1`,
    );
    return rows;
  }

  test("each table with users: erased, or listed with a reason", async () => {
    const tables = (await tablesOfPeople()).map(({ table }) => table);
    assert.deepEqual(tables, [...ERASED, ...RETAINED].sort(), "closing.ts and this test know every table");
  });

  test("the user's own data: nowhere in the database", async () => {
    const { ctx } = market.service;
    const [person, seller] = [await hasPerson("LEAVERMARK"), await market.createUser()];
    const { userId } = person.key;
    await person.session.patch("/v1/account", {
      bio: "BIOMARK",
      handle: "handlemark",
      links: [{ label: "LINKMARK", url: "https://example.com/" }],
    });
    const draftId = await createDraft(person.key);
    await person.key.put(`/v1/products/${draftId}/draft`, { changes: { title: "DRAFTMARK" } });
    const imported = JSON.stringify({ ...haiku, id: "IMPORTMARK" });
    const headers = { "content-type": "application/jsonl" };
    assert.equal(
      (await person.key.request("POST", "/v1/products/import", { body: imported, headers })).status,
      200,
    );
    const bought = await createProduct(seller);
    await buyProduct(person.key, bought);
    const executionId = await hasRun(person.key, bought);
    assert.equal((await person.key.post(`/v1/ai/executions/${executionId}/share`)).status, 200);
    const key = {
      provider: "ollama",
      name: "KEYNAMEMARK",
      key: "sk-0123456789abcdef",
      baseUrl: "http://127.0.0.1:9",
    };
    assert.equal((await person.key.post("/v1/ai/keys", key)).status, 201);
    assert.equal((await person.key.post("/v1/payment-methods", { token: "pm_test_ok" })).status, 201);
    await requestTokens(market, userId, await createOAuthClient(market, person.key));
    await enableTwoFactor(market, person.session);
    assert.equal((await person.session.put("/v1/account/subscription", { plan: "pro" })).status, 200);
    const hook = { url: "https://example.com/HOOKMARK", description: "HOOKMARK" };
    assert.equal((await person.key.post("/v1/webhooks", hook)).status, 201);
    await mintOneTimeToken(ctx, ctx.db, { purpose: "two-factor", userId, lifetimeMs: MINUTE_MS });
    await mintOneTimeToken(ctx, ctx.db, {
      purpose: "magic-link",
      email: person.email,
      lifetimeMs: MINUTE_MS,
    });
    await market.query("update users set password_hash = 'HASHMARK' where id = $1", [userId]);
    await market.query("update executions set error_message = 'VARIABLEMARK' where user_id = $1", [userId]);
    assert.equal((await close(person, person.email)).status, 200);

    for (const { table, columns } of await tablesOfPeople()) {
      if (!ERASED.includes(table)) continue;
      const { rows } = await market.query(`select from ${table} where ${columns.join(" = $1 or ")} = $1`, [
        userId,
      ]);
      assert.equal(rows.length, 0, table);
    }
    const { rows: answers } = await market.query("select from idempotency_keys where caller = $1", [userId]);
    assert.equal(answers.length, 0);
    const { rows: runs } = await market.query("select sealed_texts from executions where user_id = $1", [
      userId,
    ]);
    assert.deepEqual(runs, [{ sealed_texts: null }]);
    const { rows: keys } = await market.query(
      "select sealed_key, last4 from provider_keys where user_id = $1",
      [userId],
    );
    assert.deepEqual(keys, [{ sealed_key: "", last4: "" }]);
    // Orders and plan payments name the buyer for the ledger. Sent emails have the old address.
    const dump = await dumpDatabase(market, ["orders", "subscription_payments", "emails"]);
    for (const mark of [
      "LEAVERMARK",
      "BIOMARK",
      "handlemark",
      "LINKMARK",
      "KEYNAMEMARK",
      "IMPORTMARK",
      "HOOKMARK",
      "HASHMARK",
      "VARIABLEMARK",
      person.email,
    ])
      assert.ok(!dump.includes(mark), `${mark} is still in the database`);
  });

  test("a write of the request log that ends after the closing: leaves no row", async () => {
    const person = await hasPerson();
    const { ctx } = market.service;
    await market.query(
      `create function wait_for_test() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock(4711); return new; end $$`,
    );
    await market.query(
      "create trigger wait_for_test before insert on request_logs for each row execute function wait_for_test()",
    );
    const holder = await ctx.pool.connect();
    try {
      await holder.query("select pg_advisory_lock(4711)");
      await person.key.get("/v1/categories");
      const written = flushRequestLog(ctx);
      await waitForBlockedStatements(market);
      const closed = close(person, person.email);
      await until("the account is closed", async () => !(await isOpen(person)));
      await holder.query("select pg_advisory_unlock(4711)");
      assert.equal((await closed).status, 200);
      await written;
    } finally {
      holder.release(true);
      await market.query("drop function wait_for_test cascade");
    }
    const { rows } = await market.query("select from request_logs where user_id = $1", [person.key.userId]);
    assert.equal(rows.length, 0);
  });

  test("a run that was in progress: stores no text at its end", async () => {
    const [person, seller] = [await hasPerson(), await market.createUser()];
    const productId = await createProduct(seller);
    await buyProduct(person.key, productId);
    await market.query(
      `create function close_meanwhile() returns trigger language plpgsql as $$
       begin new.deleted_at = new.created_at; return new; end $$`,
    );
    await market.query(
      "create trigger close_meanwhile before insert on executions for each row execute function close_meanwhile()",
    );
    try {
      await hasRun(person.key, productId);
    } finally {
      await market.query("drop function close_meanwhile cascade");
    }
    const { rows } = await market.query("select status, sealed_texts from executions where user_id = $1", [
      person.key.userId,
    ]);
    assert.deepEqual(rows, [{ status: "completed", sealed_texts: null }]);
  });
});
