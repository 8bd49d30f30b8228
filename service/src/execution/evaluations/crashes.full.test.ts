import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readJudgeMessage } from "@stoa/evaluation/judge-prompt";
import { type Forked, forkProgram } from "../../../test/child.ts";
import { evaluationOf, startEvaluation, storeTestSet, untilEvaluated } from "../../../test/evaluations.ts";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { allowedBy, type ProviderServer, startProviderServer, USAGE } from "../../../test/provider-server.ts";
import type { RunWorkerOptions } from "../../../test/run-worker-process.ts";
import { createProviderKey, providersAt } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { startWorker } from "../../../test/workflows.ts";
import { requireUuid } from "../../core/ids.ts";
import { advanceEvaluation } from "./advance.ts";

const PROGRAM = new URL("../../../test/run-worker-process.ts", import.meta.url);
const LEASE_MS = 10_000;
/** gpt-5-mini, in USD for a token. */
const PRICE = { input: 0.25e-6, output: 2e-6 };
/**
 * Pays for 12 answers of 32,768 tokens, the most that a key with a budget asks for, and most of a 13th: three open calls that die, and
 * ten of the baseline.
 */
const BUDGET_USD = 0.84;

let provider: ProviderServer;
let market: Market;
let author: Client;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser({ name: "Author" });
});
after(async () => {
  await market.close();
  await provider.close();
});

const cases = Array.from({ length: 10 }, (_, n) => ({
  title: `Case ${n}`,
  input: { topic: `topic ${n}` },
  assert: [{ type: "contains", value: "yes" }],
}));

async function startWorkerProcess(): Promise<Forked> {
  const options: RunWorkerOptions = {
    config: market.service.ctx.config,
    target: market.target,
    now: market.clock.now,
    baseUrls: providersAt(provider).baseUrls!,
  };
  const worker = forkProgram(PROGRAM, options);
  await worker.answer();
  return worker;
}

test("kill -9 in a column, and jobs that run twice at once: no case whose result was written runs again, no column twice, and the key's budget holds with the calls that died", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId, cases);
  const apiKeyId = await createProviderKey(author, { monthlyBudget: BUDGET_USD });
  for (let n = 0; n < 7; n++) provider.next({ answer: { text: "yes" } });
  for (let n = 0; n < 3; n++) provider.next("hang");
  const killed = await startWorkerProcess();
  const request = { models: [{ apiKeyId, model: "gpt-5-mini" }], repeats: 1, maxCost: 1 };
  const id = await startEvaluation(author, productId, request);
  const [column] = (await evaluationOf(author, id)).columns;
  await becomes(
    async () => provider.requests.filter(({ method }) => method === "POST").length,
    (calls) => calls === 10,
  );
  await becomes(
    async () => (await writtenItems(column.executionId)).length,
    (written) => written === 7,
  );
  const before = promptsOf(provider);
  const written = await writtenItems(column.executionId);
  for (let n = 0; n < 3; n++) provider.next({ answer: { text: "yes" } });
  const baseline: { input: number; output: number }[] = [];
  provider.always((request) => {
    const usage = { input: 12, output: allowedBy(request) };
    baseline.push(usage);
    return { answer: { text: "yes", usage } };
  });
  killed.child.kill("SIGKILL");
  await killed.ended;
  market.clock.forward(LEASE_MS + 1);
  const survivor = startWorker(market);
  const again = async () => {
    await Promise.all([1, 2, 3].map(() => advanceEvaluation(market.service.ctx, requireUuid("eval", id))));
    return evaluationOf(author, id);
  };
  await becomes(again, ({ status }) => status !== "running");
  const done = await untilEvaluated(market, author, id);
  await survivor.stop();
  provider.always(null);
  assert.deepEqual([done.status, done.results.length], ["completed", 20]);
  assert.deepEqual(
    done.columns.map(({ passed, n }: { passed: number; n: number }) => [passed, n]),
    [
      [10, 10],
      [10, 10],
    ],
  );
  const after = promptsOf(provider).slice(before.length);
  assert.equal(after.length, 3 + 10, "the three open calls, then each case of the baseline once");
  for (const item of written)
    assert.ok(!after.includes(`Write a haiku about topic ${item} in English.`), `case ${item} ran again`);
  const { rows } = await market.query(
    "select count(distinct execution_id)::int as runs, count(*)::int as columns from evaluation_columns where evaluation_id = $1",
    [requireUuid("eval", id)],
  );
  assert.deepEqual(rows, [{ runs: 2, columns: 2 }]);
  const started = await market.query("select from workflow_runs");
  assert.equal(started.rowCount, 2);
  const spent = await spentWith(apiKeyId);
  assert.deepEqual([spent.calls, spent.dead], [7 + 3 + 13, 3]);
  const usages = [...Array<typeof USAGE>(10).fill(USAGE), ...baseline];
  assertAlike(
    spent.paid,
    usages.reduce((sum, { input, output }) => sum + input * PRICE.input + output * PRICE.output, 0),
  );
  assertAlike(done.cost, spent.paid);
  assert.ok(
    spent.paid + spent.held <= BUDGET_USD,
    "the provider may still bill what the dead calls reserved",
  );
  assert.ok(spent.paid + spent.held > BUDGET_USD - 0.001, "without them the last answer could be longer");
});

for (const type of ["llm-rubric", "similar"] as const)
  test(`kill -9 in the judge's column of ${type}: no output is judged twice whose verdict was written, and the numbers are those of one run`, async () => {
    const productId = await createProduct(author);
    await storeTestSet(
      author,
      productId,
      cases.map((one, n) => ({ ...one, assert: [{ type, value: `Rubric ${n}` }] })),
    );
    const apiKeyId = await createProviderKey(author);
    const judge = {
      ...{ apiKeyId, model: "gpt-5-mini" },
      ...(type === "similar" && { embedding: { apiKeyId } }),
    };
    const request = {
      models: [{ apiKeyId: "sandbox", model: "sandbox-echo" }],
      repeats: 1,
      maxCost: 1,
      judge,
    };
    const answer = { answer: { text: '{"reason":"Good.","pass":true,"score":1}' } };
    for (let n = 0; n < 7; n++) provider.next(answer);
    for (let n = 0; n < 3; n++) provider.next("hang");
    const before = askedRubrics().length;
    const killed = await startWorkerProcess();
    const id = await startEvaluation(author, productId, request);
    const advance = async () => {
      await Promise.all([1, 2, 3].map(() => advanceEvaluation(market.service.ctx, requireUuid("eval", id))));
      return evaluationOf(author, id);
    };
    const { columns } = await becomes(advance, ({ columns }) => columns[1].status === "running");
    await becomes(
      async () => askedRubrics().length - before,
      (calls) => calls === 10,
    );
    await becomes(
      async () => (await writtenItems(columns[1].executionId)).length,
      (written) => written === 7,
    );
    const written = await writtenItems(columns[1].executionId);
    for (let n = 0; n < 13; n++) provider.next(answer);
    killed.child.kill("SIGKILL");
    await killed.ended;
    market.clock.forward(LEASE_MS + 1);
    const survivor = startWorker(market);
    await becomes(advance, ({ status }) => status !== "running");
    const done = await untilEvaluated(market, author, id);
    await survivor.stop();
    assert.equal(done.status, "completed", JSON.stringify(done.error));
    assert.deepEqual(
      done.columns.map(({ kind, passed, n }: { kind: string; passed: number; n: number }) => [
        kind,
        passed,
        n,
      ]),
      [
        ["product", 0, 0],
        ["judge", 10, 10],
        ["baseline", 0, 0],
        ["judge", 10, 10],
      ],
    );
    const after = askedRubrics().slice(before + 10);
    assert.equal(after.length, 3 + 10, "the three open calls, then each output of the baseline once");
    for (const item of written)
      assert.equal(after.filter((rubric) => rubric === `Rubric ${item}`).length, 1, `output ${item}`);
  });

const assertAlike = (actual: number, expected: number): void =>
  assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);

/** What the calls of a key cost, and what those hold that no process ended. */
async function spentWith(
  apiKeyId: string,
): Promise<{ calls: number; dead: number; paid: number; held: number }> {
  const { rows } = await market.query(
    `select count(*)::int as calls, count(*) filter (where ended_at is null)::int as dead, sum(cost_usd)::float8 as paid,
            sum(expected_usd) filter (where ended_at is null)::float8 as held
       from provider_calls where provider_key_id = $1`,
    [requireUuid("pkey", apiKeyId)],
  );
  return rows[0];
}

/** The rubrics of all calls of the judge, and the references of its embeddings. */
const askedRubrics = (): string[] =>
  provider.requests.flatMap(({ body }) => {
    const { messages, input } = (body ?? {}) as { messages?: { content: string }[]; input?: string[] };
    if (input) return input.slice(1);
    const content = messages?.[1]?.content;
    return content === undefined ? [] : [readJudgeMessage(content)?.rubric ?? ""];
  });

const promptsOf = ({ requests }: ProviderServer): string[] =>
  requests.flatMap(({ body }) => {
    const content = (body as { messages?: { content: string }[] } | undefined)?.messages?.[0]?.content;
    return content === undefined ? [] : [content];
  });

/** The items of the run whose outputs are written. */
async function writtenItems(executionId: string): Promise<number[]> {
  const { rows } = await market.query(
    "select item from execution_steps where execution_id = $1 and item >= 0 and status = 'completed'",
    [requireUuid("exec", executionId)],
  );
  return rows.map(({ item }) => item);
}
