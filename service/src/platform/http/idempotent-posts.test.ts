import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { type Endpoint, endpoints, isRepeatable } from "@stoa/contract";
import { authenticatorOf, enableTwoFactor } from "../../../test/authenticator.ts";
import { sandboxRequest, startEvaluation, storeTestSet } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { JSONL, jsonLines } from "../../../test/import-export.ts";
import { callsOfWriters, killedBefore, momentOf, writtenSince } from "../../../test/kill-points.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { GOOD_KEY, type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt } from "../../../test/runs.ts";
import { allowTries } from "../../../test/tries.ts";
import { becomes } from "../../../test/until.ts";
import { picture, send } from "../../../test/uploads.ts";
import { createWorkflow, startExecution, startWorker, transformStep } from "../../../test/workflows.ts";
import { routes } from "../../app.ts";
import { flushViews } from "../../catalog/search/views.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { queueEmail } from "../email/email-queue.ts";
import { renderEmail } from "../email/render-email.ts";
import { startJobWorker } from "../jobs/job-worker.ts";

/** A prepared request that still needs its Idempotency-Key header. */
type Ask = (headers: Record<string, string>) => Promise<Reply>;

let market: Market;
let provider: ProviderServer;
let seller: Client;
let writers: RegExp;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  // The clock is fixed, so each kill looks like an outage. ai/crashes.test.ts tests the delays of one.
  market.service.ctx.databaseUptime.hasBeenUpFor = () => true;
  seller = await market.createUser({ name: "Seller" });
  writers = await callsOfWriters((text) => market.query(text));
  // The first sale of a seller writes rows that later ones update.
  await hasOrder();
});
after(async () => {
  await market.close();
  await provider.close();
});

const hasSession = async () => market.createSession((await market.createUser()).userId);
const hasAdmin = async () =>
  market.createSession((await market.createUser({ role: "admin" })).userId, { secondFactor: true });
const posts =
  (client: Client, path: string, body?: unknown): Ask =>
  (headers) =>
    client.post(`/v1${path}`, body, headers);

const hasStatus = (productId: string, status: string) =>
  market.query("update products set status = $2 where id = $1", [toUuid("prod", productId), status]);

async function hasReview() {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  await buyProduct(buyer, productId);
  const { body } = await buyer.post(`/v1/products/${productId}/reviews`, { rating: 4, comment: "Good." });
  return { productId, reviewId: body.data.id as string };
}

async function hasOrder() {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  return { buyer, productId, orderId: await buyProduct(buyer, productId) };
}

/** A request that the seller must decide, because the buyer has read the content. */
async function hasRefundRequest() {
  const { buyer, productId, orderId } = await hasOrder();
  await buyer.get(`/v1/products/${productId}`);
  const { body } = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" });
  assert.equal(body.data.status, "pending");
  return { buyer, refundId: body.data.id as string };
}

async function hasWebhook() {
  const owner = await market.createUser();
  const input = { url: "http://127.0.0.1:9/", eventTypes: ["purchase.completed"] };
  const { body } = await owner.post("/v1/webhooks", input);
  return { owner, webhookId: body.data.id as string };
}

const hasTransform = () => createWorkflow(seller, { steps: [transformStep("one", "1")] });

async function hasCanceledRun() {
  const id = await startExecution(seller, await hasTransform());
  await seller.post(`/v1/ai/executions/${id}/cancel`);
  const worker = startWorker(market);
  await becomes(
    async () => (await seller.get(`/v1/ai/executions/${id}`)).body.data.status,
    (status) => status === "canceled",
  );
  await worker.stop();
  return id;
}

async function hasApproval() {
  const workflowId = await createWorkflow(seller, {
    steps: [{ id: "yes", type: "approval", timeoutSeconds: 600 }],
  });
  const id = await startExecution(seller, workflowId);
  const worker = startWorker(market);
  await becomes(
    async () => (await seller.get(`/v1/ai/executions/${id}`)).body.data.status,
    (status) => status === "waiting",
  );
  await worker.stop();
  return id;
}

const moderates = async (status: string, verb: string, body?: unknown) => {
  const id = await createProduct(seller);
  if (status === "suspended")
    await (await hasAdmin()).post(`/v1/admin/products/${id}/suspend`, {
      reasonCode: "spam",
      reason: "Spam.",
    });
  else await hasStatus(id, status);
  return posts(await hasAdmin(), `/admin/products/${id}/${verb}`, body);
};

async function hasFailedJob(): Promise<string> {
  const { rows } = await market.query(
    `insert into pgboss.job (name, data) values ('detach-payment-method-given-up', '{"id": "pm_test_ok"}') returning id`,
  );
  return toId("job", rows[0].id);
}

/** Scheduled by a worker that has ended, so that its runs wait. */
async function hasScheduledJob(): Promise<void> {
  await market.query("delete from pgboss.job where name = 'count-stars'");
  const job = { name: "count-stars", cron: "11 3 * * *", run: async () => {} };
  await (await startJobWorker(market.service.ctx, [job], [])).stop();
}

async function hasUnsentEmail(): Promise<string> {
  await market.query("update emails set sent_at = now() where sent_at is null");
  const { ctx } = market.service;
  const email = renderEmail({ subject: "News", paragraphs: ["Something changed."] });
  await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, "ada@example.com", email));
  const { rows } = await market.query("select id from emails where sent_at is null");
  return toId("mail", rows[0].id);
}

/** The answer comes when the work in the background has ended, too, because it writes as well. */
const startsTask = async (path: string): Promise<Ask> => {
  const admin = await hasAdmin();
  await market.query("delete from operator_tasks");
  return async (headers) => {
    const reply = await admin.post(`/v1${path}`, undefined, headers);
    await market.service.ctx.operatorTasks.waitUntilIdle();
    return reply;
  };
};

const spam = { reasonCode: "other", reason: "Spam." };
const newKey = { name: "Once", permissions: { "products:read": true } };
const newClient = { name: "Once", redirectUris: ["https://client.example/callback"] };
const chat = (model: string) => ({
  model,
  metadata: { apiKeyId: "sandbox" },
  messages: [{ role: "user", content: JSON.stringify({ topic: "rain" }) }],
});

const isTested = async (): Promise<string> => {
  const id = await createProduct(seller);
  await storeTestSet(seller, id);
  return id;
};

/** Every POST with an Idempotency-Key, and its preconditions. */
const requests = {
  "products.create": async () => posts(await market.createUser(), "/products", haiku),
  "products.publish": async () => posts(seller, `/products/${await createDraft(seller)}/publish`),
  "products.withdraw": async () => {
    const id = await createDraft(seller);
    await hasStatus(id, "pending_review");
    return posts(seller, `/products/${id}/withdraw`);
  },
  "products.unpublish": async () => posts(seller, `/products/${await createProduct(seller)}/unpublish`),
  "products.import": async () => {
    const importer = await market.createUser();
    const body = jsonLines(haiku, { ...haiku, title: "Another haiku" });
    return (headers) =>
      importer.request("POST", "/v1/products/import?publish=true", {
        body,
        headers: { ...headers, "content-type": JSONL },
      });
  },
  "products.scan": async () =>
    posts(seller, `/products/${await createDraft(seller)}/scan`, { title: "Once" }),
  "products.testSet.import": async () =>
    posts(seller, `/products/${await createDraft(seller)}/test-set/import`, {
      format: "promptfoo-yaml",
      content:
        "tests:\n  - vars:\n      topic: rain\n    assert:\n      - type: icontains\n        value: rain\n",
    }),
  "evaluations.create": async () =>
    posts(seller, `/products/${await isTested()}/evaluations`, sandboxRequest),
  "evaluations.estimate": async () =>
    posts(seller, `/products/${await isTested()}/evaluations/estimate`, sandboxRequest),
  "evaluations.cancel": async () =>
    posts(seller, `/evaluations/${await startEvaluation(seller, await isTested())}/cancel`),
  "admin.products.approve": () => moderates("pending_review", "approve"),
  "admin.products.reject": () => moderates("pending_review", "reject", { reason: "Too short." }),
  "admin.products.suspend": () => moderates("published", "suspend", spam),
  "admin.products.reinstate": () => moderates("suspended", "reinstate"),
  "files.create": async () => {
    const id = await createDraft(seller);
    return (headers) => send(seller, `/v1/products/${id}/files`, { bytes: `# ${id}\n`, headers });
  },
  "images.create": async () => {
    const id = await createDraft(seller);
    const bytes = await picture();
    return (headers) => send(seller, `/v1/products/${id}/images`, { name: "picture.png", bytes, headers });
  },
  "account.avatar.create": async () => {
    const session = await hasSession();
    const bytes = await picture();
    return (headers) => send(session, "/v1/account/avatar", { name: "avatar.png", bytes, headers });
  },
  "reviews.create": async () => {
    const { buyer, productId } = await hasOrder();
    return posts(buyer, `/products/${productId}/reviews`, { rating: 4, comment: "Good." });
  },
  "reviews.reply": async () => {
    const { productId, reviewId } = await hasReview();
    return posts(seller, `/products/${productId}/reviews/${reviewId}/reply`, { comment: "Thanks." });
  },
  "reviews.report": async () => {
    const { productId, reviewId } = await hasReview();
    return posts(seller, `/products/${productId}/reviews/${reviewId}/report`, { reason: "Spam." });
  },
  "notifications.read": async () => {
    const { userId } = await market.createUser();
    const session = await market.createSession(userId);
    const key = { name: "A key", permissions: { "products:read": true } };
    await session.post("/v1/api-keys", key);
    return posts(session, "/notifications/read", { before: market.clock.now.toISOString() });
  },
  "products.report": async () =>
    posts(await market.createUser(), `/products/${await createProduct(seller)}/report`, {
      reasonCode: "spam",
    }),
  "admin.products.dismissReports": async () => {
    const productId = await createProduct(seller);
    await (await market.createUser()).post(`/v1/products/${productId}/report`, { reasonCode: "spam" });
    return posts(await hasAdmin(), `/admin/products/${productId}/dismiss-reports`);
  },
  "purchases.create": async () => {
    const productId = await createProduct(seller);
    return posts(await market.createUser(), "/purchases", { productId });
  },
  "purchases.quote": async () => {
    const productId = await createProduct(seller);
    return posts(await market.createUser(), "/purchases/quote", { productId });
  },
  "payouts.create": async () => {
    const earner = await market.createUser({ role: "seller" });
    const session = await market.createSession(earner.userId);
    await session.put("/v1/account/payout-account", { account: "acct_test" });
    await bookEarnings(market, earner, { amountMinor: 5000n });
    return posts(session, "/payouts", { amount: 10 });
  },
  "payouts.account.onboard": async () => posts(await hasSession(), "/account/payout-account/onboarding"),
  "paymentMethods.create": async () =>
    posts(await market.createUser(), "/payment-methods", { token: "pm_test_ok" }),
  "paymentMethods.startSetup": async () => posts(await market.createUser(), "/payment-methods/setup", {}),
  "paymentMethods.setDefault": async () =>
    posts(await market.createUser(), "/payment-methods/pm_test_declined/default"),
  "refunds.create": async () => {
    const { buyer, orderId } = await hasOrder();
    return posts(buyer, `/purchases/${orderId}/refund`, { reason: "accidental" });
  },
  "refunds.approve": async () => posts(seller, `/refunds/${(await hasRefundRequest()).refundId}/approve`),
  "refunds.reject": async () =>
    posts(seller, `/refunds/${(await hasRefundRequest()).refundId}/reject`, { reason: "It works." }),
  "refunds.cancel": async () => {
    const { buyer, refundId } = await hasRefundRequest();
    return posts(buyer, `/refunds/${refundId}/cancel`);
  },
  "admin.orders.refund": async () => {
    const { orderId } = await hasOrder();
    return posts(await hasAdmin(), `/admin/orders/${orderId}/refund`, { amount: 1, reason: "other" });
  },
  "admin.products.refundBuyers": async () => {
    const { productId } = await hasOrder();
    const admin = await hasAdmin();
    await admin.post(`/v1/admin/products/${productId}/suspend`, {
      reasonCode: "malicious",
      reason: "Steals.",
    });
    return posts(admin, `/admin/products/${productId}/refund-buyers`);
  },
  "discountCodes.create": async () =>
    posts(await market.createUser({ role: "seller" }), "/discount-codes", { code: "ONCE", percentOff: 10 }),
  "ai.execute": async () => {
    const productId = await createDraft(seller);
    return posts(seller, "/ai/execute", { productId, apiKeyId: "sandbox", variables: { topic: "rain" } });
  },
  "ai.estimate": async () => {
    const productId = await createDraft(seller);
    return posts(seller, "/ai/estimate", { productId, apiKeyId: "sandbox", variables: { topic: "rain" } });
  },
  "tryOuts.run": async () => {
    const productId = await createProduct(seller);
    await allowTries(seller, { productId, apiKeyId: "sandbox" });
    return posts(await market.createUser(), `/products/${productId}/try`, { variables: { topic: "rain" } });
  },
  "ai.executions.cancel": async () =>
    posts(seller, `/ai/executions/${await startExecution(seller, await hasTransform())}/cancel`),
  "ai.executions.share": async () => {
    const productId = await createDraft(seller);
    const run = { productId, apiKeyId: "sandbox", variables: { topic: "rain" } };
    const { executionId } = (await seller.post("/v1/ai/execute", run)).body.data;
    return posts(seller, `/ai/executions/${executionId}/share`);
  },
  "ai.keys.create": async () =>
    posts(await market.createUser(), "/ai/keys", { provider: "openai", name: "Once", key: GOOD_KEY }),
  "ai.keys.verify": async () => {
    const owner = await market.createUser();
    return posts(owner, `/ai/keys/${await createProviderKey(owner)}/verify`);
  },
  "ai.workflows.execute": async () =>
    posts(seller, `/ai/workflows/${await hasTransform()}/execute`, { apiKeys: { sandbox: "sandbox" } }),
  "ai.workflows.check": async () => posts(seller, "/ai/workflows/check", { content: "{}" }),
  "ai.workflows.test": async () => posts(seller, `/ai/workflows/${await hasTransform()}/test`),
  "ai.executions.retry": async () => posts(seller, `/ai/executions/${await hasCanceledRun()}/retry`),
  "ai.executions.approve": async () =>
    posts(seller, `/ai/executions/${await hasApproval()}/steps/yes/approve`),
  "ai.executions.reject": async () => posts(seller, `/ai/executions/${await hasApproval()}/steps/yes/reject`),
  "openai.completions.create": async () =>
    posts(seller, "/openai/chat/completions", chat(await createDraft(seller))),
  "webhooks.create": async () =>
    posts(await market.createUser(), "/webhooks", {
      url: "http://127.0.0.1:9/",
      eventTypes: ["purchase.completed"],
    }),
  "webhooks.rotateSecret": async () => {
    const { owner, webhookId } = await hasWebhook();
    return posts(owner, `/webhooks/${webhookId}/rotate-secret`, {});
  },
  "webhooks.test": async () => {
    const { owner, webhookId } = await hasWebhook();
    return posts(owner, `/webhooks/${webhookId}/test`);
  },
  "webhooks.recover": async () => {
    const { owner, webhookId } = await hasWebhook();
    const since = new Date(market.clock.now.getTime() - 3_600_000).toISOString();
    return posts(owner, `/webhooks/${webhookId}/recover`, { since });
  },
  "deliveries.retry": async () => {
    const { owner, webhookId } = await hasWebhook();
    const { body } = await owner.post(`/v1/webhooks/${webhookId}/test`);
    return posts(owner, `/deliveries/${body.data.id}/retry`);
  },
  "apiKeys.create": async () => posts(await hasSession(), "/api-keys", newKey),
  "apiKeys.rotate": async () => {
    const session = await hasSession();
    const { body } = await session.post("/v1/api-keys", newKey);
    return posts(session, `/api-keys/${body.data.id}/rotate`);
  },
  "twoFactor.setUp": async () => posts(await hasSession(), "/account/two-factor"),
  "twoFactor.confirm": async () => {
    const session = await hasSession();
    const { body } = await session.post("/v1/account/two-factor");
    return posts(session, "/account/two-factor/confirm", {
      code: authenticatorOf(market, body.data.secret).code(),
    });
  },
  "twoFactor.renewBackupCodes": async () => {
    const session = await hasSession();
    const app = await enableTwoFactor(market, session);
    return posts(session, "/account/two-factor/backup-codes", { code: app.nextCode() });
  },
  "account.callbackSecret.rotate": async () => posts(await hasSession(), "/account/callback-secret"),
  "admin.users.ban": async () => {
    const { userId } = await market.createUser();
    return posts(await hasAdmin(), `/admin/users/${idOf(userId)}/ban`, { reason: "Spam." });
  },
  "admin.users.unban": async () => {
    const admin = await hasAdmin();
    const { userId } = await market.createUser();
    await admin.post(`/v1/admin/users/${idOf(userId)}/ban`, { reason: "Spam." });
    return posts(admin, `/admin/users/${idOf(userId)}/unban`);
  },
  "admin.users.endSessions": async () => {
    const { userId } = await hasSession();
    return posts(await hasAdmin(), `/admin/users/${idOf(userId)}/end-sessions`);
  },
  "admin.reviews.hide": async () =>
    posts(await hasAdmin(), `/admin/reviews/${(await hasReview()).reviewId}/hide`, { reason: "Spam." }),
  "admin.reviews.restore": async () => {
    const { reviewId } = await hasReview();
    const admin = await hasAdmin();
    await admin.post(`/v1/admin/reviews/${reviewId}/hide`, { reason: "Spam." });
    return posts(admin, `/admin/reviews/${reviewId}/restore`);
  },
  "admin.jobs.retry": async () => {
    const jobId = await hasFailedJob();
    return posts(await hasAdmin(), `/admin/jobs/${jobId}/retry`);
  },
  "admin.jobs.retryAll": async () => {
    await hasFailedJob();
    return posts(await hasAdmin(), "/admin/jobs/retry");
  },
  "admin.queues.run": async () => {
    await hasScheduledJob();
    return posts(await hasAdmin(), "/admin/queues/count-stars/run");
  },
  "admin.emails.retry": async () => posts(await hasAdmin(), `/admin/emails/${await hasUnsentEmail()}/retry`),
  "admin.emails.retryAll": async () => {
    await hasUnsentEmail();
    return posts(await hasAdmin(), "/admin/emails/retry");
  },
  "admin.ledgerVerifications.create": () => startsTask("/admin/ledger-verifications"),
  "admin.backups.create": () => startsTask("/admin/backups"),
  "admin.backups.createDownloadLink": async () => {
    const admin = await hasAdmin();
    await market.query("delete from operator_tasks");
    const { id } = (await admin.post("/v1/admin/backups")).body.data;
    await becomes(
      async () => (await admin.get(`/v1/admin/backups/${id}`)).body.data.status,
      (status) => status === "succeeded",
    );
    return posts(admin, `/admin/backups/${id}/download-link`);
  },
  "oauth.clients.create": async () => posts(await hasSession(), "/oauth-clients", newClient),
  "oauth.clients.rotateSecret": async () => {
    const session = await hasSession();
    const { body } = await session.post("/v1/oauth-clients", newClient);
    return posts(session, `/oauth-clients/${body.data.clientId}/rotate-secret`);
  },
} satisfies Record<string, () => Promise<Ask>>;

const idOf = (userId: string) => toId("usr", userId);

type Name = keyof typeof requests;

/** Requests about money: each is killed at every statement separately. */
const MONEY: ReadonlySet<string> = new Set<Name>([
  "purchases.create",
  "payouts.create",
  "refunds.create",
  "refunds.approve",
  "admin.orders.refund",
  "ai.execute",
]);
/** Tables in which a repeat may write other rows, with the reason. */
const NOT_COMPARED: Record<string, string> = {
  idempotency_keys: "rows of the key itself, which the answers prove",
  search_words: "the first use of a word writes it, for all of them",
  blobs: "the first of equal bytes are kept, for all of them",
  product_views: "views are noted in memory and written twice a second",
  request_logs: "requests are noted in memory and written each second",
  view_salts: "as views",
  product_daily_views: "as views",
  author_daily_views: "as views",
  operator_tasks: "work in the background writes how it goes; the audit log has each start",
  ledger_verifications: "as operator_tasks",
  version: "pg-boss notes there each minute when it looked",
};

/** When the first process had started an irreversible step or used up a code, the repeat may report that instead. */
const MAY_ALSO_ANSWER: Partial<Record<Name, string>> = {
  "ai.execute": "500 INTERNAL_ERROR",
  "tryOuts.run": "409 INVALID_STATE",
  "openai.completions.create": "406 INTERNAL_ERROR",
  "twoFactor.renewBackupCodes": "422 VALIDATION_ERROR",
};

const isGrowth = (line: string) => line.endsWith(" rows more");

/** All rows that `work` writes. */
async function writtenBy<T>(work: () => Promise<T>): Promise<{ result: T; written: string[] }> {
  const query = (text: string) => market.query(text);
  await flushViews(market.service.ctx);
  const before = await momentOf(query, NOT_COMPARED);
  const result = await work();
  return { result, written: await writtenSince(query, before, NOT_COMPARED) };
}

const expireRuns = () =>
  market.query(
    `update executions set lease_until = '-infinity'
      where status = 'running' and lease_until is distinct from '-infinity'`,
  );

interface Answered {
  reply: Reply;
  /** The number of kills before the answer. */
  kills: number;
}

/** Sends a request repeatedly, killed before each further recorded statement from `first` on, until it is answered. */
async function untilAnswered(ask: Ask, key: Record<string, string>, first: number): Promise<Answered> {
  for (let nth = first; nth < 40; nth++) {
    let reply: Reply | undefined;
    const { wasReached } = await killedBefore(nth, writers, async () => {
      reply = await ask(key);
    });
    if (!wasReached) return { reply: reply!, kills: nth - first };
    // The process is only simulated and lives on, so its leases must expire.
    await market.query(
      "update idempotency_keys set lease_until = '-infinity' where status is null and key = $1",
      [key["idempotency-key"]],
    );
    await expireRuns();
  }
  return assert.fail("it is never answered");
}

function assertSameAnswer({ showsSecret }: Endpoint, reply: Reply, first: Reply) {
  if (showsSecret && reply.status === 409) return assert.equal(reply.body.error.code, "CONFLICT", reply.text);
  assert.equal(reply.status, first.status, reply.text);
  assert.deepEqual(Object.keys(reply.body.data ?? reply.body), Object.keys(first.body.data ?? first.body));
}

suite("POST with an Idempotency-Key, its process killed between any two statements", () => {
  const repeatable = endpoints.filter(isRepeatable);

  test("each POST: has a request and an expected repeat here", () => {
    assert.deepEqual(
      Object.keys(requests).sort(),
      repeatable.map(({ name }) => name).sort(),
      "a new POST needs a request in this test",
    );
    for (const { endpoint, resume, repeatableBecause } of routes.filter((route) =>
      isRepeatable(route.endpoint),
    )) {
      const hasRule = endpoint.showsSecret || resume !== undefined || repeatableBecause !== undefined;
      assert.ok(
        hasRule,
        `${endpoint.name}: bind the key and give a resume, or say why acting again is harmless`,
      );
    }
  });

  /** These move money, so that every run tries them. */
  const ALWAYS = ["purchases.create", "refunds.create"];
  // From the fifth on: that sample needs neither a worker nor a cancellation.
  const sample = sampleOf(repeatable, 4, 9);
  for (const endpoint of repeatable.filter((one) => sample.includes(one) || ALWAYS.includes(one.name))) {
    test(`${endpoint.name}: the repeat gets the answer of the first, and each write happens once`, async () => {
      const name = endpoint.name as Name;
      const prepare: () => Promise<Ask> = requests[name];
      const newKeyOf = () => ({ "idempotency-key": randomUUID() });
      const whole = await prepare();
      const { result: first, written: wanted } = await writtenBy(() => whole(newKeyOf()));
      assert.ok(first.status < 300, first.text);
      let wasKilled = true;
      for (let from = 1; wasKilled; from++) {
        const ask = await prepare();
        // Runs that earlier tests have left are none of this request's.
        await expireRuns();
        const {
          result: { reply, kills },
          written,
        } = await writtenBy(() => untilAnswered(ask, newKeyOf(), from));
        wasKilled = kills > 0 && MONEY.has(name);
        assert.ok(kills > 0 || from > 1, "it was never killed");
        const isOther = `${reply.status} ${reply.body.error?.code}` === MAY_ALSO_ANSWER[name];
        const message = `killed from statement ${from} on`;
        if (isOther) {
          const grown = reply.status === 422 ? [] : wanted.filter(isGrowth);
          assert.deepEqual(written.filter(isGrowth), grown, message);
        } else {
          assertSameAnswer(endpoint, reply, first);
          assert.deepEqual(written, wanted, message);
        }
      }
    });
  }
});
