import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { wilsonInterval } from "@stoa/evaluation/statistics";
import { emailsToUser } from "../../../test/emails.ts";
import { sandboxRequest, startEvaluation, storeTestSet, untilEvaluated } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { notificationsOf, titlesOf } from "../../../test/notifications.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { startWorker } from "../../../test/workflows.ts";
import { digestOf } from "../../core/digest.ts";
import { newUuid, requireUuid } from "../../core/ids.ts";
import { advanceEvaluation, advanceEvaluations } from "./advance.ts";
import { notifyOfRegression, notifyOfRegressionJob } from "./buyer-notifications.ts";
import { listComparable } from "./queries.ts";
import { startReEvaluations } from "./re-evaluations.ts";
import { type ComparableEvaluation, findRegressions, findWorse } from "./regressions.ts";

const DAY_MS = 86_400_000;
const MODEL = "gpt-5-mini";
const limits = { maxCost: 1, monthlyBudget: 5 };

let provider: ProviderServer;
let market: Market;
let moderated: Market;
let author: Client;
let apiKeyId: string;
const workers: ReturnType<typeof startWorker>[] = [];
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  moderated = await openMarket({ config: { moderation: true } });
  workers.push(startWorker(market), startWorker(moderated));
});
after(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all([market.close(), moderated.close()]);
  await provider.close();
});
beforeEach(async () => {
  author = await market.createUser({ name: "Author" });
  apiKeyId = await createProviderKey(author);
  answers("yes");
});

const answers = (text: string) => provider.always({ answer: { text } });

const cases = Array.from({ length: 6 }, (_, n) => ({
  title: `Case ${n}`,
  input: { topic: `topic ${n}` },
  assert: [{ type: "contains", value: "yes" }],
}));

const requestOf = (model = MODEL) => ({ models: [{ apiKeyId, model }], repeats: 1, maxCost: 1 });

/** A product on sale with a completed evaluation, by default of the provider's model. */
async function createEvaluated(request: object = requestOf(), fields: object = {}): Promise<string> {
  const productId = await createProduct(author, { title: "Poet", ...fields });
  await storeTestSet(author, productId, cases);
  await evaluate(productId, request);
  return productId;
}

async function evaluate(productId: string, request: object = requestOf()) {
  const done = await untilEvaluated(market, author, await startEvaluation(author, productId, request));
  assert.equal(done.status, "completed", JSON.stringify(done.error));
  return done;
}

async function allowReEvaluations(productId: string, settings: object = limits) {
  const reply = await author.put(`/v1/products/${productId}/re-evaluation`, settings);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

const settingsOf = async (productId: string) =>
  (await author.get(`/v1/products/${productId}/re-evaluation`)).body.data;

/** Newest first. */
const evaluationsOf = async (productId: string) =>
  (await author.get(`/v1/products/${productId}/evaluations`)).body.data;

const startersOf = async (productId: string): Promise<string[]> =>
  (await evaluationsOf(productId)).map(({ startedBy }: { startedBy: string }) => startedBy);

/** Three workers at once. */
const reEvaluate = async () => {
  await Promise.all([1, 2, 3].map(() => startReEvaluations(market.service.ctx)));
};

/** What three workers do until no evaluation of the product runs. */
const untilEnded = (productId: string) =>
  becomes(
    async () => {
      await Promise.all([1, 2, 3].map(() => advanceEvaluations(market.service.ctx)));
      return evaluationsOf(productId);
    },
    (evaluations) => evaluations.every(({ status }: { status: string }) => status !== "running"),
  );

const cardOf = async (productId: string) =>
  (await author.get(`/v1/products/${productId}/score-card`)).body.data.scoreCard;

const eventsOf = async (type: string) => (await author.get(`/v1/events?type=${type}`)).body.data;

async function notifyBuyersOf(productId: string): Promise<number> {
  const { rows } = await market.query(
    `select j.data from pgboss.job j join evaluations e on e.id = (j.data->>'evaluationId')::uuid
      where j.name = $1 and e.product_id = $2 order by j.created_on`,
    [notifyOfRegressionJob.name, requireUuid("prod", productId)],
  );
  for (const { data } of rows)
    await notifyOfRegression(market.service.ctx, data, new AbortController().signal, 1);
  return rows.length;
}

test("a model that got worse: repeated once by schedule, flagged with numbers, one event, seller and buyers notified, and the flag goes", async () => {
  const productId = await createEvaluated();
  const [buyer, silent] = [await market.createUser(), await market.createUser()];
  for (const each of [buyer, silent]) await buyProduct(each, productId);
  const session = await market.createSession(silent.userId);
  await session.patch("/v1/account/notifications", { kinds: { "product.regressed": { email: false } } });
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  assert.deepEqual(await startersOf(productId), ["seller"], "without the seller's consent nothing runs");
  const first = (await cardOf(productId)).evaluationId;
  assert.deepEqual((await cardOf(productId)).regressions, []);
  await allowReEvaluations(productId);
  answers("no");
  await reEvaluate();
  assert.deepEqual(await startersOf(productId), ["schedule", "seller"]);
  const [repeated] = await untilEnded(productId);
  assert.deepEqual(
    repeated.columns.map(({ kind, model, n }: Record<string, unknown>) => [kind, model, n]),
    [
      ["product", MODEL, 6],
      ["baseline", MODEL, 6],
    ],
  );
  const card = await cardOf(productId);
  assert.equal(card.evaluationId, repeated.id);
  assert.deepEqual(repeated.regressions, card.regressions);
  const [{ before, after, ...regression }] = card.regressions;
  assert.deepEqual(regression, {
    ...{ provider: "openai", model: MODEL, cause: "model" },
    since: card.evaluatedAt,
  });
  assert.deepEqual([before.evaluationId, before.version, before.passed, before.n], [first, "1.0.0", 6, 6]);
  assert.deepEqual([after.passed, after.n, after.rate.value], [0, 6, 0]);
  assert.equal(
    (await buyer.get(`/v1/evaluations/${first}/proof`)).status,
    200,
    "its numbers can be verified",
  );
  const [event, ...others] = await eventsOf("evaluation.regressed");
  assert.equal(others.length, 0);
  assert.deepEqual(event.data.evaluation.regressions[0].before, {
    ...{ evaluationId: first, version: "1.0.0", passed: 6, n: 6 },
  });
  assert.ok((await titlesOf(author)).includes("Poet passes fewer of its tests than before"));
  assert.equal(await notifyBuyersOf(productId), 1);
  await notifyBuyersOf(productId);
  for (const each of [buyer, silent]) {
    const [notification, ...more] = await notificationsOf(each);
    assert.deepEqual([notification!.kind, more.length], ["product.regressed", 0]);
    assert.equal(notification!.text, `openai ${MODEL} passes 0 of 6 runs instead of 6 of 6.`);
  }
  assert.deepEqual([await emailsTo(buyer), await emailsTo(silent)], [1, 0]);
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  const [again] = await untilEnded(productId);
  assert.equal(again.regressions[0].since, card.evaluatedAt);
  assert.equal((await eventsOf("evaluation.regressed")).length, 1, "a known regression is no news");
  assert.equal(await notifyBuyersOf(productId), 1);
  answers("yes");
  await evaluate(productId);
  assert.deepEqual((await cardOf(productId)).regressions, []);
});

const emailsTo = async ({ userId }: Client): Promise<number> =>
  (await emailsToUser(market, userId)).filter(({ subject }) => subject === "Passes fewer tests: Poet").length;

/** As if the price list had this entry of a model when the newest evaluation began. */
const changeStoredPrice = (productId: string, change: object, model = MODEL) =>
  market.query(
    `update evaluations e
        set model_prices = (select jsonb_agg(case when m->>'model' = $3 then m || $2::jsonb else m end)
                              from jsonb_array_elements(e.model_prices) m)
      where id = (select max(id::text)::uuid from evaluations where product_id = $1)`,
    [requireUuid("prod", productId), JSON.stringify(change), model],
  );

test("a changed price and a deprecated model: one re-evaluation each, and a failed one is not tried again", async () => {
  const productId = await createEvaluated(requestOf(), { compatibility: ["openai", "google"] });
  await allowReEvaluations(productId);
  await reEvaluate();
  assert.deepEqual(await startersOf(productId), ["seller"]);
  await changeStoredPrice(productId, { completionPrice: 123 });
  await reEvaluate();
  assert.deepEqual(await startersOf(productId), ["price_changed", "seller"]);
  await untilEnded(productId);
  await reEvaluate();
  assert.equal((await startersOf(productId)).length, 2);
  const google = await createProviderKey(author, { provider: "google" });
  await evaluate(productId, {
    ...requestOf(),
    models: [{ apiKeyId: google, model: "gemini-2.5-flash-preview" }],
  });
  await changeStoredPrice(productId, { isDeprecated: false }, "gemini-2.5-flash-preview");
  provider.always("bad-key");
  await reEvaluate();
  assert.equal((await startersOf(productId))[0], "model_deprecated");
  const [failed] = await untilEnded(productId);
  assert.deepEqual([failed.status, failed.error.code], ["failed", "PROVIDER_KEY_INVALID"]);
  assert.ok((await titlesOf(author)).includes("The evaluation of Poet 1.0.0 failed"));
  await reEvaluate();
  assert.equal((await startersOf(productId)).length, 4);
});

test("a judge whose price changes or that is deprecated: re-evaluated as for the tested models", async () => {
  const rubric = { ...cases[0]!, assert: [{ type: "llm-rubric", value: "Is kind" }] };
  const workflow = {
    ...{ type: "WORKFLOW", compatibility: undefined },
    content: JSON.stringify({
      format: "workflow/1",
      input: { type: "object", properties: { topic: { type: "string" } } },
      steps: [
        {
          ...{ id: "echo", type: "prompt", provider: "sandbox", model: "sandbox-echo" },
          ...{ messages: [{ role: "user", content: "{{topic}}" }], vars: { topic: "input.topic" } },
        },
      ],
      result: "steps.echo.output",
    }),
  };
  answers('{"reason":"It is.","pass":true,"score":1}');
  const products = [
    [{}, { ...sandboxRequest, repeats: 1 }],
    [workflow, { apiKeys: { sandbox: "sandbox" }, repeats: 1, maxCost: 1 }],
  ] as const;
  for (const [fields, request] of oneOf(products)) {
    const productId = await createProduct(author, fields);
    await storeTestSet(author, productId, [rubric]);
    await evaluate(productId, { ...request, judge: { apiKeyId, model: MODEL } });
    await allowReEvaluations(productId);
    await reEvaluate();
    assert.deepEqual(await startersOf(productId), ["seller"]);
    await changeStoredPrice(productId, { completionPrice: 123 });
    await reEvaluate();
    assert.deepEqual(await startersOf(productId), ["price_changed", "seller"]);
    const [{ status, judge }] = await untilEnded(productId);
    assert.deepEqual([status, judge.model], ["completed", MODEL]);
    await reEvaluate();
    assert.equal((await startersOf(productId)).length, 2, "the same reason starts no second one");
  }
});

test("limits: neither an evaluation above maxCost nor a month above its budget", async () => {
  const productId = await createEvaluated();
  const { cost } = (await evaluationsOf(productId))[0];
  assert.ok(cost > 0 && cost < 0.01, `${cost}`);
  assertError(
    await author.put(`/v1/products/${productId}/re-evaluation`, { maxCost: 2, monthlyBudget: 1 }),
    422,
    "VALIDATION_ERROR",
    "monthlyBudget",
  );
  const stranger = await market.createUser({ role: "seller" });
  assertError(await stranger.put(`/v1/products/${productId}/re-evaluation`, limits), 403, "UNAUTHORIZED");
  const path = `/v1/products/${productId}/re-evaluation`;
  const writer = await market.createUser({ permissions: ["products:read", "products:write"] });
  for (const method of ["GET", "PUT", "DELETE"])
    assertError(
      await writer.request(method, path, method === "PUT" ? { json: limits } : {}),
      403,
      "UNAUTHORIZED",
    );
  const { maxCost, monthlyBudget, intervalDays } = await settingsOf(productId);
  assert.deepEqual([maxCost, monthlyBudget, intervalDays], [null, null, 30]);
  await allowReEvaluations(productId, { maxCost: 0.01, monthlyBudget: 0.01 });
  await changeStoredPrice(productId, { completionPrice: 123 });
  await reEvaluate();
  const [first] = await untilEnded(productId);
  assert.deepEqual([first.status, first.maxCost], ["completed", 0.01]);
  assert.deepEqual((await settingsOf(productId)).used, { evaluations: 1, cost });
  await market.query("update re_evaluations set monthly_budget_usd = $2 where product_id = $1", [
    requireUuid("prod", productId),
    cost * 1.5,
  ]);
  await changeStoredPrice(productId, { completionPrice: 124 });
  await reEvaluate();
  assert.equal((await startersOf(productId)).length, 2, "the rest of the month's budget is too small");
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  assert.equal((await startersOf(productId)).length, 3);
  assert.equal((await untilEnded(productId))[0].maxCost, cost * 1.5, "never more than the month has left");
  const turnOff = () => author.request("DELETE", `/v1/products/${productId}/re-evaluation`);
  assert.equal((await turnOff()).status, 200);
  assertError(await turnOff(), 409, "INVALID_STATE");
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  assert.equal((await startersOf(productId)).length, 3);
});

test("a provider key that is gone: one notification and no run, until the settings change", async () => {
  const productId = await createEvaluated();
  await allowReEvaluations(productId);
  assert.equal((await author.request("DELETE", `/v1/ai/keys/${apiKeyId}`)).status, 200);
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  await reEvaluate();
  const isPause = ({ kind }: { kind: string }) => kind === "evaluation.paused";
  assert.equal((await notificationsOf(author)).filter(isPause).length, 1);
  const { paused } = await settingsOf(productId);
  const [evaluation] = await evaluationsOf(productId);
  assert.deepEqual([paused.code, paused.evaluationId], ["PROVIDER_KEY_NOT_FOUND", evaluation.id]);
  assert.equal((await allowReEvaluations(productId)).paused, null);
  await reEvaluate();
  assert.equal((await notificationsOf(author)).filter(isPause).length, 2);
  assert.deepEqual(await startersOf(productId), ["seller"]);
  apiKeyId = await createProviderKey(author);
  await evaluate(productId);
  market.clock.forward(31 * DAY_MS);
  await reEvaluate();
  assert.deepEqual(await startersOf(productId), ["schedule", "seller", "seller"]);
  await untilEnded(productId);
});

const GOOD = "Say yes to {{topic}}.";
const BAD = "Say no to {{topic}}.";
const patch = (productId: string, change: object) => author.patch(`/v1/products/${productId}`, change);

test("a worse version: flagged when its evaluation shows it, and refused without the seller's word when it is known before", async () => {
  const productId = await createEvaluated(sandboxRequest, { content: GOOD });
  assert.equal((await patch(productId, { content: BAD })).status, 200, "not measured yet");
  await evaluate(productId, sandboxRequest);
  const [{ cause, before, after }] = (await cardOf(productId)).regressions;
  assert.deepEqual([cause, before.version, before.passed, after.passed], ["version", "1.0.0", 12, 0]);
  assert.equal((await patch(productId, { content: `${BAD} Now.` })).status, 200);
  await evaluate(productId, sandboxRequest);
  const edited = (await cardOf(productId)).regressions;
  assert.equal(edited[0]?.before.version, "1.0.0", "an edit of the worse version does not hide it");
  await patch(productId, { content: GOOD });
  await evaluate(productId, sandboxRequest);
  assert.deepEqual((await cardOf(productId)).regressions, []);
  assertError(
    await patch(productId, { acknowledgesRegression: true }),
    422,
    "VALIDATION_ERROR",
    "acknowledgesRegression",
  );
  const problem = assertError(
    await patch(productId, { content: BAD }),
    422,
    "VALIDATION_ERROR",
    "acknowledgesRegression",
  );
  assert.match(problem!.reason, /sandbox sandbox-echo passes 0 of 12 runs instead of 12 of 12/);
  const word = { content: BAD, acknowledgesRegression: true };
  assertError(await patch(productId, word), 422, "VALIDATION_ERROR", "changelog");
  assert.equal((await patch(productId, { ...word, changelog: "Shorter, and says no." })).status, 200);
  await evaluate(productId, sandboxRequest);
  assert.deepEqual((await cardOf(productId)).regressions, []);
  const { data: versions } = (await author.get(`/v1/products/${productId}/versions`)).body;
  assert.deepEqual(
    versions.map((each: { acknowledgesRegression: boolean }) => each.acknowledgesRegression),
    [true, false, false, false, false],
  );
});

const wordOf = (word: string) => ({
  variables: [
    { name: "word", required: false, default: word },
    { name: "topic", required: true },
  ],
});

test("a worse default of a variable: the version's fault and not the model's, and refused without the seller's word when it is known", async () => {
  const productId = await createEvaluated(sandboxRequest, {
    content: "Say {{word}} to {{topic}}.",
    ...wordOf("yes"),
  });
  assert.equal((await patch(productId, wordOf("no"))).status, 200, "not measured yet");
  assert.equal(await cardOf(productId), null);
  await evaluate(productId, sandboxRequest);
  const [{ cause, before, after }] = (await cardOf(productId)).regressions;
  assert.deepEqual([cause, before.version, before.passed, after.passed], ["version", "1.0.0", 12, 0]);
  await patch(productId, wordOf("yes"));
  await evaluate(productId, sandboxRequest);
  assert.deepEqual((await cardOf(productId)).regressions, []);
  assertError(await patch(productId, wordOf("no")), 422, "VALIDATION_ERROR", "acknowledgesRegression");
  const word = { ...wordOf("no"), acknowledgesRegression: true, changelog: "Says no by default." };
  assert.equal((await patch(productId, word)).status, 200);
  await evaluate(productId, sandboxRequest);
  assert.deepEqual((await cardOf(productId)).regressions, []);
});

test("another format of the same content: another version, whose drop is not the model's", async () => {
  const content = '[{"role":"user","content":"Say yes to {{topic}}."}]';
  const productId = await createProduct(author, { content, contentFormat: "text" });
  const asked = cases.map((one) => ({ ...one, assert: [{ type: "contains", value: '"role"' }] }));
  await storeTestSet(author, productId, asked);
  await evaluate(productId, sandboxRequest);
  assert.equal((await patch(productId, { contentFormat: "messages" })).status, 200);
  const { columns, contentSha256 } = await evaluate(productId, sandboxRequest);
  assert.deepEqual([columns[0].passed, contentSha256], [0, digestOf(content).toString("hex")]);
  assert.equal((await cardOf(productId)).regressions[0]?.cause, "version");
});

test("a draft whose variables change: an evaluation that completed before is not on the card of the released version", async () => {
  const productId = await createDraft(author, { content: "Say {{word}} to {{topic}}.", ...wordOf("yes") });
  await storeTestSet(author, productId, cases);
  await evaluate(productId, sandboxRequest);
  await patch(productId, wordOf("no"));
  assert.equal((await author.post(`/v1/products/${productId}/publish`)).status, 200);
  assert.equal(await cardOf(productId), null);
  await patch(productId, { title: "Poet again" });
  const { data } = (await author.get("/v1/products?testedOn=sandbox-echo&limit=100")).body;
  assert.ok(!data.some(({ id }: { id: string }) => id === productId));
});

/** A product on sale under moderation that was evaluated, and the moves of its seller and moderator. */
async function createModerated() {
  const seller = await moderated.createUser({ name: "Seller" });
  const { userId } = await moderated.createUser({ role: "admin" });
  const admin = await moderated.createSession(userId, { secondFactor: true });
  const productId = await createProduct(seller, { content: GOOD });
  const path = `/v1/products/${productId}`;
  const etagOf = async () => (await admin.get(path)).headers.get("etag")!;
  const approve = async (etag?: string) => {
    const headers = { "if-match": etag ?? (await etagOf()) };
    const reply = await admin.post(`/v1/admin/products/${productId}/approve`, undefined, headers);
    assert.equal(reply.status, 200, reply.text);
  };
  const evaluate = async () => untilEvaluated(moderated, seller, await startEvaluation(seller, productId));
  await approve();
  await storeTestSet(seller, productId, cases);
  await evaluate();
  return {
    ...{ seller, productId, etagOf, approve, evaluate },
    checksOf: async () => (await admin.get(`/v1/admin/products/${productId}/checks`)).body.data,
    change: (change: object) => seller.patch(path, change),
    /** Off sale, changed and submitted again. */
    async submit(change: object) {
      await seller.post(`${path}/unpublish`);
      assert.equal((await seller.patch(path, change)).status, 200);
      assert.equal((await seller.post(`${path}/publish`)).body.data.status, "pending_review");
    },
    cardOf: async () => (await seller.get(`${path}/score-card`)).body.data.scoreCard,
    eventsOf: async () => (await seller.get("/v1/events?type=evaluation.regressed")).body.data,
  };
}

test("a version under moderation: measured before its release, and its submission is refused without the seller's word", async () => {
  const { seller, productId, change, evaluate } = await createModerated();
  await seller.post(`/v1/products/${productId}/unpublish`);
  await change({ content: BAD });
  const worse = await evaluate();
  assert.deepEqual([worse.version, worse.regressions], ["1.1.0", []]);
  const refused = await seller.post(`/v1/products/${productId}/publish`);
  assertError(refused, 422, "VALIDATION_ERROR", "acknowledgesRegression");
  const word = { version: "1.1.1", acknowledgesRegression: true, changelog: "Says no." };
  assert.equal((await change(word)).status, 200);
  assert.equal((await seller.post(`/v1/products/${productId}/publish`)).body.data.status, "pending_review");
});

test(
  "a version that was submitted unmeasured and evaluated before its approval: flagged and reported once by the approval, and its next edit too",
  inFullRun,
  async () => {
    const { seller, productId, submit, approve, evaluate, checksOf, cardOf, eventsOf } =
      await createModerated();
    const first = (await cardOf()).evaluationId;
    await buyProduct(await moderated.createUser(), productId);
    await submit({ content: BAD });
    await evaluate();
    assert.deepEqual((await evaluate()).regressions, []);
    assert.deepEqual(await eventsOf(), []);
    const { measured, sellerRuns } = await checksOf();
    const [{ isWorse, before: old, after: now }] = measured;
    assert.deepEqual(
      [isWorse, old.version, old.passed, now.passed, now.n, measured.length],
      [true, "1.0.0", 12, 0, 12, 1],
      "moderators see both rates",
    );
    assert.deepEqual(sellerRuns, { failed: 0, n: 0 }, "evaluations are no runs");
    await approve();
    assert.deepEqual((await checksOf()).measured, []);
    const [{ cause, before, after }] = (await cardOf()).regressions;
    assert.deepEqual([cause, before.evaluationId, before.passed, after.passed], ["version", first, 12, 0]);
    assert.equal((await eventsOf()).length, 1);
    assert.ok((await notificationsOf(seller)).some(({ kind }) => kind === "evaluation.regressed"));
    const { rowCount } = await moderated.query("select from pgboss.job where name = $1", [
      notifyOfRegressionJob.name,
    ]);
    assert.equal(rowCount, 1);
    await evaluate();
    assert.equal((await eventsOf()).length, 1, "a known regression is no news");
    await submit({ content: `${BAD} Now.` });
    await evaluate();
    await approve();
    assert.equal((await cardOf()).regressions[0]?.before.evaluationId, first, "an edit does not hide it");
    await submit({ content: `${GOOD} Now.` });
    await evaluate();
    await approve();
    assert.deepEqual((await cardOf()).regressions, []);
  },
);

test(
  "an approval and the end of an evaluation at the same time: flagged and reported once in either order",
  inFullRun,
  async () => {
    const { seller, productId, submit, etagOf, approve, evaluate, cardOf, eventsOf } =
      await createModerated();
    for (const [n, isApprovedFirst] of [true, false].entries()) {
      await submit({ content: `${BAD} ${n}` });
      const id = await startEvaluation(seller, productId);
      await untilGradable(moderated, seller, id, 1);
      const etag = await etagOf();
      const end = () => advanceEvaluation(moderated.service.ctx, requireUuid("eval", id));
      const [first, second] = isApprovedFirst ? [() => approve(etag), end] : [end, () => approve(etag)];
      const holder = await moderated.service.ctx.pool.connect();
      await holder.query("begin");
      await holder.query("select from products where id = $1 for no key update", [
        requireUuid("prod", productId),
      ]);
      const begun = first();
      await waitForBlockedStatements(moderated, 1);
      const both = Promise.all([begun, second()]);
      await waitForBlockedStatements(moderated, 2);
      await holder.query("commit");
      holder.release();
      await both;
      const { evaluationId, regressions } = await cardOf();
      assert.deepEqual([evaluationId, regressions.length], [id, 1], `approved first: ${isApprovedFirst}`);
      assert.equal((await eventsOf()).length, n + 1);
      await submit({ content: `${GOOD} ${n}` });
      await evaluate();
      await approve();
    }
  },
);

/** Until the run of a column has ended and waits to be graded. */
async function untilGradable(of: Market, seller: Client, id: string, column: number): Promise<string> {
  const { executionId } = await becomes(
    async () => {
      await advanceBefore(of, id, column);
      return (await seller.get(`/v1/evaluations/${id}`)).body.data.columns[column];
    },
    ({ status }) => status === "running",
  );
  await becomes(
    async () => (await seller.get(`/v1/ai/executions/${executionId}`)).body.data.status,
    (status) => status === "completed",
  );
  return executionId;
}

/** Grades the columns before the given one. */
async function advanceBefore(of: Market, id: string, column: number): Promise<void> {
  const { rows } = await of.query(
    "select n from evaluation_columns where evaluation_id = $1 and status = 'running'",
    [requireUuid("eval", id)],
  );
  if (rows[0]?.n < column) await advanceEvaluation(of.service.ctx, requireUuid("eval", id));
}

test("the execution of a column that is deleted while it is read, or lost a result: the evaluation fails and has no scores", async () => {
  const productId = await createEvaluated(sandboxRequest, { content: GOOD });
  const first = (await cardOf(productId)).evaluationId;
  const deleteWhileRead = async (id: string, executionId: string) => {
    const holder = await market.service.ctx.pool.connect();
    await holder.query("begin; lock table test_sets in access exclusive mode");
    const advanced = advanceEvaluation(market.service.ctx, requireUuid("eval", id));
    await waitForBlockedStatements(market);
    const reply = await author.request("DELETE", `/v1/ai/executions/${executionId}`);
    await holder.query("commit");
    holder.release();
    assert.equal(reply.status, 200, reply.text);
    await advanced;
  };
  const loseResult = async (id: string, executionId: string) => {
    const { rowCount } = await market.query(
      "delete from execution_steps where execution_id = $1 and item = 3",
      [requireUuid("exec", executionId)],
    );
    assert.equal(rowCount, 1);
    await advanceEvaluation(market.service.ctx, requireUuid("eval", id));
  };
  for (const [at, harm] of [deleteWhileRead, loseResult].entries())
    for (const column of oneOf([0, 1], at)) {
      const id = await startEvaluation(author, productId);
      await harm(id, await untilGradable(market, author, id, column));
      const { status, error, columns } = (await author.get(`/v1/evaluations/${id}`)).body.data;
      assert.deepEqual(
        [status, error?.code, columns[column].status],
        ["failed", "EXECUTION_NOT_FOUND", "failed"],
        `${harm.name}, column ${column}`,
      );
    }
  assert.equal((await cardOf(productId)).evaluationId, first);
});

test("an evaluation that cannot be graded: logged, and the others go on", async () => {
  const [broken, whole] = [
    await createProduct(author, { content: GOOD }),
    await createProduct(author, { content: GOOD }),
  ];
  const ids: string[] = [];
  for (const productId of [broken, whole]) {
    await storeTestSet(author, productId, cases);
    ids.push(await startEvaluation(author, productId));
  }
  const [brokenId, wholeId] = ids as [string, string];
  const executionId = await untilGradable(market, author, brokenId, 0);
  await market.query(
    "update execution_steps set sealed_output = 'none' where execution_id = $1 and item = 0",
    [requireUuid("exec", executionId)],
  );
  await untilGradable(market, author, wholeId, 0);
  await advanceEvaluations(market.service.ctx);
  const { columns } = (await author.get(`/v1/evaluations/${wholeId}`)).body.data;
  assert.equal(columns[0].status, "completed");
  assert.equal((await untilEvaluated(market, author, wholeId)).status, "completed");
  assert.ok(market.logs.some((line) => line.includes("advance an evaluation")));
  assert.equal((await author.get(`/v1/evaluations/${brokenId}`)).body.data.status, "running");
  await market.query("delete from evaluations where id = $1", [requireUuid("eval", brokenId)]);
});

test(
  "hundreds of evaluations: the first one of the content and that of the older version are still compared",
  inFullRun,
  async () => {
    const productId = await createEvaluated(sandboxRequest, { content: GOOD });
    const ofOlder = (await cardOf(productId)).evaluationId;
    await patch(productId, { content: `${GOOD} Now.` });
    const ofContent = (await evaluate(productId, sandboxRequest)).id;
    await market.query(
      `insert into evaluations
     select copy.* from evaluations e cross join unnest($2::uuid[]) as ids(copy_id)
      cross join jsonb_populate_record(e, jsonb_build_object('id', copy_id)) copy
      where e.id = $1`,
      [
        requireUuid("eval", ofContent),
        Array.from({ length: 200 }, () => newUuid(new Date(market.clock.now.getTime() + 1))),
      ],
    );
    market.clock.forward(1_000);
    const last = await evaluate(productId, sandboxRequest);
    const { rows } = await market.query(
      "select version, test_set_id, definition_sha256 from evaluations where id = $1",
      [requireUuid("eval", last.id)],
    );
    const [{ version, test_set_id: testSetId, definition_sha256: definitionSha256 }] = rows;
    const compared = await listComparable(market.service.ctx.db, {
      ...{ id: requireUuid("eval", last.id), productId: requireUuid("prod", productId) },
      ...{ version, testSetId, definitionSha256 },
    });
    assert.deepEqual(
      compared.slice(0, 2).map(({ id }) => id),
      [ofOlder, ofContent].map((id) => requireUuid("eval", id)),
    );
    assert.equal(compared.length, 202);
  },
);

/** Of 60 cases that run once. */
function comparable(passed: number, definitionSha256 = "a"): ComparableEvaluation {
  const rate = { value: passed / 60, ...wilsonInterval(passed, 60), effectiveN: 60 };
  const counted = { passed, n: 60, rate, baseline: null, medianCost: null, medianLatencyMs: null };
  const score = { provider: "openai", model: MODEL, isSandbox: false, ...counted };
  return {
    ...{ id: newUuid(new Date(0)), version: "1.0.0", definitionSha256, isOlder: definitionSha256 !== "a" },
    ...{ completedAt: new Date(0), regressions: [] },
    scores: [{ ...score, passPowerK: { k: 1, rate } }],
  };
}

test("small drops in a row: each is within the intervals, and the sum is a regression against the first evaluation", () => {
  const chain = [60, 56, 52, 47].map((passed) => comparable(passed));
  const found = chain.map((evaluated, at) =>
    findRegressions({ ...evaluated, isAcknowledged: false }, chain.slice(0, at)),
  );
  for (const [at, evaluated] of chain.slice(1).entries())
    assert.equal(findWorse(evaluated.scores[0]!, chain[at]), null, `drop ${at + 1}`);
  assert.deepEqual(
    found.map((regressions) => regressions.map(({ cause, before }) => [cause, before.passed])),
    [[], [], [["model", 60]], [["model", 60]]],
  );
  assert.deepEqual(findRegressions({ ...comparable(30), isAcknowledged: true }, [comparable(60, "b")]), []);
});
