import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { dumpDatabase } from "../../../test/dump.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { GOOD_KEY, startProviderServer } from "../../../test/provider-server.ts";
import {
  createProviderKey,
  newestRun,
  run,
  runToCompletion,
  startBlockedProvider,
} from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { toUuid } from "../../core/ids.ts";
import { RUN_LEASE_MS } from "../prompt-runs/run-record.ts";
import { eraseOldTexts, failAbandonedRuns } from "./executions.ts";

const DAY = 86_400_000;
const SECOND = 1_000;

let market: Market;
let owner: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  owner = await market.createUser();
  productId = await createDraft(owner);
});
after(() => market.close());

interface Row {
  id: string;
  status: string;
  productId: string;
  createdAt: string;
}
const list = async (by: Client, query = "") => {
  const { status, body, text } = await by.get(`/v1/ai/executions${query}`);
  assert.equal(status, 200, text);
  return { rows: body.data as Row[], ids: body.data.map(({ id }: Row) => id) as string[], meta: body.meta };
};
const read = async (by: Client, id: string) => (await by.get(`/v1/ai/executions/${id}`)).body.data;

suite("GET /v1/ai/executions", () => {
  let by: Client;
  let [first, second]: string[] = [];
  /** Four runs a second apart, newest first. The last but one failed. */
  let runs: { id: string; productId: string; failed: boolean; at: string }[] = [];
  before(async () => {
    by = await market.createUser();
    [first, second] = [await createDraft(by), await createDraft(by)];
    for (const [product, failed] of [
      [first, false],
      [second, false],
      [first, true],
      [second, false],
    ] as const) {
      market.clock.forward(SECOND);
      const at = market.clock.now.toISOString();
      const options = failed ? { model: "sandbox-500" } : {};
      const { body } = await run(by, { productId: product!, options });
      const id = failed ? body.error.details.executionId : body.data.executionId;
      runs = [{ id, productId: product!, failed, at }, ...runs];
    }
  });
  const idsWhere = (isSo: (run: (typeof runs)[number]) => boolean) => runs.filter(isSo).map(({ id }) => id);

  test("runs: own runs only, newest first", async () => {
    const { ids, meta } = await list(by);
    assert.deepEqual(
      ids,
      idsWhere(() => true),
    );
    assert.equal(meta.total, 4);
    assert.deepEqual((await list(await market.createUser())).ids, []);
  });

  test("pages: with the total", async () => {
    const { ids, meta } = await list(by, "?limit=3&page=2");
    assert.deepEqual(ids, [runs[3]!.id]);
    assert.deepEqual([meta.page, meta.limit, meta.total], [2, 3, 4]);
    const past = await list(by, "?page=9");
    assert.deepEqual([past.ids, past.meta.total], [[], 4]);
    for (const query of ["?page=0", "?limit=101", "?limit=x", "?sort=id"])
      assertError(await by.get(`/v1/ai/executions${query}`), 400, "INVALID_REQUEST");
  });

  test("status: filters", async () => {
    for (const [status, wanted] of [
      ["failed", true],
      ["completed", false],
    ] as const) {
      const { ids, meta } = await list(by, `?status=${status}`);
      assert.deepEqual(
        ids,
        idsWhere(({ failed }) => failed === wanted),
      );
      assert.equal(meta.total, ids.length);
    }
    assert.deepEqual((await list(by, "?status=running")).ids, []);
    assertError(await by.get("/v1/ai/executions?status=odd"), 400, "INVALID_REQUEST", "status");
  });

  test("productId: filters; an unknown product has no runs", async () => {
    const { ids, meta } = await list(by, `?productId=${second}`);
    assert.deepEqual(
      ids,
      idsWhere((run) => run.productId === second),
    );
    assert.equal(meta.total, 2);
    for (const other of [productId, "prod_00000000000000000000000000", "nonsense", runs[0]!.id]) {
      const { ids, meta } = await list(by, `?productId=${other}`);
      assert.deepEqual([ids, meta.total], [[], 0]);
    }
  });

  test("type: filters in any case", async () => {
    for (const type of ["PROMPT", "prompt", "Prompt"])
      assert.equal((await list(by, `?type=${type}`)).meta.total, 4);
    for (const type of ["WORKFLOW", "workflow", "nonsense"])
      assert.deepEqual((await list(by, `?type=${type}`)).ids, []);
  });

  test("from and to: from inclusive, to exclusive", async () => {
    const [, c, b] = runs.map(({ at }) => at);
    const between = async (from?: string, to?: string) => {
      const query = new URLSearchParams({ ...(from && { from }), ...(to && { to }) });
      const { ids, meta } = await list(by, `?${query}`);
      assert.equal(meta.total, ids.length);
      return ids;
    };
    assert.deepEqual(
      await between(c),
      idsWhere(({ at }) => at >= c!),
    );
    assert.deepEqual(
      await between(undefined, c),
      idsWhere(({ at }) => at < c!),
    );
    assert.deepEqual(
      await between(b, c),
      idsWhere(({ at }) => at === b),
    );
    assert.deepEqual(await between(c, b), []);
    const inVienna = new Date(Date.parse(c!) + 2 * 3_600_000).toISOString().replace("Z", "+02:00");
    assert.deepEqual(
      await between(inVienna),
      idsWhere(({ at }) => at >= c!),
    );
    assert.deepEqual(
      await between("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
      idsWhere(() => true),
    );
    assert.deepEqual(await between(undefined, "0000-01-01T00:00:00Z"), []);
    for (const from of ["yesterday", "2026-06-15", "2026-02-30T00:00:00Z", "2026-06-15T12:00:00"]) {
      const { reason } = assertError(
        await by.get(`/v1/ai/executions?from=${from}`),
        400,
        "INVALID_REQUEST",
        "from",
      );
      assert.match(reason, /must be a time .* such as 2026-/);
    }
  });

  test("several filters: all apply", async () => {
    const { ids } = await list(by, `?status=completed&productId=${first}&type=prompt&from=${runs[3]!.at}`);
    assert.deepEqual(ids, [runs[3]!.id]);
  });
});

suite("GET and DELETE /v1/ai/executions/:id", () => {
  test("completed run: shows product, usage, variables and output", async () => {
    const provider = await startProviderServer();
    const shop = await openMarket({ providers: { baseUrls: { openai: provider.url } } });
    try {
      const by = await shop.createUser();
      const draft = await createDraft(by, { models: { openai: "gpt-4o" } });
      const apiKeyId = await createProviderKey(by);
      provider.next({
        answer: { text: "Rain.", usage: { input: 1_000, output: 100 }, model: "gpt-4o-2024-08-06" },
      });
      const variables = { topic: "rain", language: "French" };
      const { executionId, usage, metadata } = await runToCompletion(by, {
        productId: draft,
        apiKeyId,
        variables,
      });
      assert.deepEqual(await read(by, executionId), {
        id: executionId,
        type: "PROMPT",
        mode: "sync",
        status: "completed",
        productId: draft,
        productVersion: "1.0.0",
        provider: "openai",
        model: "gpt-4o-2024-08-06",
        usage,
        duration: metadata.duration,
        error: null,
        createdAt: shop.clock.now.toISOString(),
        completedAt: shop.clock.now.toISOString(),
        cancelRequestedAt: null,
        variables,
        output: "Rain.",
        finishReason: "stop",
        attempts: 1,
        share: null,
      });
      assert.deepEqual([usage.estimatedCost, usage.costKnown], [0.0035, true]);
    } finally {
      await shop.close();
      await provider.close();
    }
  });

  test("running execution: is shown as running and cannot be deleted", async () => {
    const blocked = await startBlockedProvider();
    const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } } });
    try {
      const by = await shop.createUser();
      const request = { productId: await createDraft(by), apiKeyId: await createProviderKey(by) };
      const running = run(by, request);
      await blocked.arrivals(1);
      const { id, status, usage, duration, completedAt } = await newestRun(by);
      assert.deepEqual([status, usage, duration, completedAt], ["running", null, null, null]);
      const details = assertError(await by.delete(`/v1/ai/executions/${id}`), 409, "INVALID_STATE");
      assert.deepEqual(details, { current: "running", allowed: ["completed", "failed", "canceled"] });
      blocked.answer();
      await running;
      assert.equal((await by.delete(`/v1/ai/executions/${id}`)).status, 200);
    } finally {
      await shop.close();
      await blocked.close();
    }
  });

  test("deleted execution: is erased, then 404 and not listed", async () => {
    const { executionId } = await runToCompletion(owner, { productId });
    const { body } = await owner.delete(`/v1/ai/executions/${executionId}`);
    assert.deepEqual(body.data, { id: executionId, deleted: true });
    for (const reply of [
      await owner.get(`/v1/ai/executions/${executionId}`),
      await owner.delete(`/v1/ai/executions/${executionId}`),
    ])
      assertError(reply, 404, "EXECUTION_NOT_FOUND");
    assert.ok(!(await list(owner)).ids.includes(executionId));
    const { rows } = await market.query("select from executions where id = $1 and sealed_texts is not null", [
      toUuid("exec", executionId),
    ]);
    assert.equal(rows.length, 0);
  });

  test("unknown or another user's execution: 404 on every path", async () => {
    const { executionId } = await runToCompletion(owner, { productId });
    const other = await market.createUser();
    const unknown = ["exec_00000000000000000000000000", "nonsense", productId];
    for (const id of [executionId, ...unknown]) {
      assertError(await other.get(`/v1/ai/executions/${id}`), 404, "EXECUTION_NOT_FOUND");
      assertError(await other.delete(`/v1/ai/executions/${id}`), 404, "EXECUTION_NOT_FOUND");
    }
    assert.equal((await read(owner, executionId)).id, executionId);
  });

  test("buyer's execution: 404 for the author", async () => {
    const author = await market.createUser();
    const forSale = await createProduct(author);
    const buyer = await market.createUser();
    await buyProduct(buyer, forSale);
    const { executionId } = await runToCompletion(buyer, { productId: forSale });
    assert.deepEqual((await list(author)).ids, []);
    assertError(await author.get(`/v1/ai/executions/${executionId}`), 404, "EXECUTION_NOT_FOUND");
  });

  test("texts copied to another row: do not open", async () => {
    const from = await runToCompletion(owner, { productId, variables: { topic: "a secret" } });
    const to = await runToCompletion(owner, { productId });
    await market.query(
      "update executions set sealed_texts = (select sealed_texts from executions where id = $1) where id = $2",
      [from, to].map(({ executionId }) => toUuid("exec", executionId)),
    );
    assertError(await owner.get(`/v1/ai/executions/${to.executionId}`), 500, "INTERNAL_ERROR");
    assert.ok((await list(owner)).ids.includes(to.executionId));
  });
});

suite("texts of an execution", () => {
  test("options.store false: are not stored, but the run is", async () => {
    const options = { store: false, model: "sandbox-echo" };
    const variables = { topic: "not-to-be-kept" };
    const { executionId, output, usage, metadata } = await runToCompletion(owner, {
      productId,
      variables,
      options,
    });
    assert.ok(output.includes("not-to-be-kept"));
    const stored = await read(owner, executionId);
    assert.deepEqual([stored.variables, stored.output], [null, null]);
    assert.deepEqual([stored.usage, stored.model, stored.status], [usage, metadata.model, "completed"]);
    const { rows } = await market.query("select sealed_texts from executions where id = $1", [
      toUuid("exec", executionId),
    ]);
    assert.deepEqual(rows, [{ sealed_texts: null }]);
  });

  test("stored: are sealed, whatever they contain", async () => {
    const topic = '"quotes", \\ and 🗝 – naïve\nlines';
    const { executionId, output } = await runToCompletion(owner, {
      productId,
      variables: { topic },
      options: { model: "sandbox-echo" },
    });
    const stored = await read(owner, executionId);
    assert.deepEqual([stored.variables, stored.output], [{ topic }, output]);
    assert.ok(!(await dumpDatabase(market)).includes("naïve"));
  });

  test("older than 30 days: are erased, and the run stays", async () => {
    const { executionId, usage } = await runToCompletion(owner, { productId });
    market.clock.forward(30 * DAY);
    await eraseOldTexts(market.service.ctx);
    assert.notEqual((await read(owner, executionId)).output, null, "not erased before 30 days");
    const { executionId: younger } = await runToCompletion(owner, { productId });
    market.clock.forward(1);
    await eraseOldTexts(market.service.ctx);
    const stored = await read(owner, executionId);
    assert.deepEqual([stored.output, stored.variables], [null, null]);
    assert.deepEqual([stored.status, stored.usage], ["completed", usage]);
    assert.notEqual((await read(owner, younger)).output, null);
  });
});

test("run of a dead process: is failed when its lease has expired, and stays failed", async () => {
  const blocked = await startBlockedProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } } });
  try {
    const by = await shop.createUser();
    const running = run(by, {
      productId: await createDraft(by),
      apiKeyId: await createProviderKey(by, { key: GOOD_KEY }),
    });
    await blocked.arrivals(1);
    shop.clock.forward(RUN_LEASE_MS);
    await failAbandonedRuns(shop.service.ctx);
    assert.equal((await newestRun(by)).status, "running", "the lease has not expired");
    shop.clock.forward(1);
    await failAbandonedRuns(shop.service.ctx);
    const { status, error, completedAt } = await newestRun(by);
    assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
    assert.equal(completedAt, shop.clock.now.toISOString());
    blocked.answer();
    assert.equal((await running).status, 200, "a waiting client gets the answer");
    assert.equal((await newestRun(by)).status, "failed");
    assert.match(shop.logs.join(""), /a run ended after another process had failed or canceled it/);
  } finally {
    await shop.close();
    await blocked.close();
  }
});

test("run that ends during a database outage: is recorded after it", async () => {
  const blocked = await startBlockedProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } } });
  try {
    const by = await shop.createUser();
    const request = {
      productId: await createDraft(by),
      apiKeyId: await createProviderKey(by, { monthlyBudget: 1 }),
    };
    const running = run(by, request);
    await blocked.arrivals(1);
    await shop.query("create sequence refused");
    await shop.query(`create function refuse() returns trigger language plpgsql as $$ begin
      if nextval('refused') <= 3 then raise 'gone' using errcode = '57P01'; end if;
      return new;
    end $$`);
    await shop.query(
      "create trigger refuse before update on executions for each row execute function refuse()",
    );
    blocked.answer();
    const { status, body } = await running;
    assert.equal(status, 200);
    const { usage } = await becomes(
      () => newestRun(by),
      (execution) => execution.status === "completed",
    );
    assert.deepEqual(usage, body.data.usage);
    const calls = await shop.query(
      "select cost_usd > 0 as cost from provider_calls where ended_at is not null",
    );
    assert.deepEqual(calls.rows, [{ cost: true }]);
  } finally {
    await shop.close();
    await blocked.close();
  }
});
