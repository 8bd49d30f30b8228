import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { ErrorCode } from "@stoa/contract";
import fc from "fast-check";
import { createDraft } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt, run, startBlockedProvider } from "../../../test/runs.ts";
import { statementsOf } from "../../../test/statements.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { type ProviderAnswer, ProviderError } from "../../integrations/ai-providers/ai-provider.ts";
import { monthStartOf } from "./month-cost.ts";
import {
  askForText,
  deleteOldCalls,
  endCall,
  type KeyedCall,
  LEASE_MS,
  makeCall,
  openCall as reserveCall,
} from "./provider-calls.ts";
import { findUsableKey } from "./provider-keys.ts";
import { countCalls } from "./queries.ts";

/** gpt-4o: 10 USD for a million output tokens, so 0.01 USD for a call, and a little for the prompt. */
const options = { model: "gpt-4o", maxTokens: 1_000 };
/** gpt-4o: 2.50 USD for a million input tokens. */
const USAGE = { promptTokens: 1_000, completionTokens: 100, totalTokens: 1_100 };
const COST_USD = 0.0035;

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  owner = await market.createUser();
  productId = await createDraft(owner);
});
after(async () => {
  await market.close();
  await provider.close();
});

/** Makes one call as a workflow does, from its reservation to its end. */
async function callWithKey(ctx: Context, call: KeyedCall) {
  const made = await makeCall(ctx, await reserveCall(ctx, call.key, call), call, askForText);
  if (made.end) await endCall(ctx, made.end);
  if ("cause" in made) throw made.cause;
  return made;
}

async function openCall(apiKeyId: string, more: { maxTokens?: number; ctx?: Context } = {}) {
  const { ctx = market.service.ctx, maxTokens = 1_000 } = more;
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<ProviderAnswer>();
  const run = () => {
    arrived.resolve();
    return answer.promise;
  };
  const key = await findUsableKey(ctx, { userId: owner.userId } as Member, apiKeyId);
  const ended = callWithKey(
    { ...ctx, integrations: { ...ctx.integrations, ai: { ...ctx.integrations.ai, run } } },
    {
      key,
      executionId: ctx.newId(),
      model: "gpt-4o",
      messages: [],
      options: { maxTokens },
      signal: new AbortController().signal,
    },
  );
  const refusal = ended.then(
    () => null,
    (error: unknown) => (error instanceof ApiError ? error.code : null),
  );
  const refusedBy = await Promise.race([arrived.promise.then(() => null), refusal]);
  return {
    refusedBy,
    async answers(usage = USAGE) {
      answer.resolve({ output: "x", model: "gpt-4o", finishReason: "stop", usage, attempts: 1 });
      return ended;
    },
    async fails(error: unknown) {
      answer.reject(error);
      await assert.rejects(ended);
    },
  };
}

const refusals = async (apiKeyId: string, count: number) => {
  const calls = await Promise.all(Array.from({ length: count }, () => openCall(apiKeyId)));
  return { calls, codes: calls.flatMap(({ refusedBy }) => (refusedBy ? [refusedBy] : [])) };
};

async function expectRefusal(apiKeyId: string, code: ErrorCode | null) {
  const call = await openCall(apiKeyId);
  assert.equal(call.refusedBy, code);
  if (code === null) await call.answers();
}

suite("concurrent runs of one key", () => {
  const runTogether = async (count: number, allowed: number, keyFields: Record<string, unknown>) => {
    const blocked = await startBlockedProvider();
    const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } } });
    try {
      const somebody = await shop.createUser();
      const request = {
        productId: await createDraft(somebody),
        apiKeyId: await createProviderKey(somebody, keyFields),
        options,
      };
      const refused: Reply[] = [];
      const mostAreRefused = Promise.withResolvers<void>();
      const runs = Array.from({ length: count }, async () => {
        const reply = await run(somebody, request);
        if (reply.status === 200) return reply;
        if (refused.push(reply) === count - allowed) mostAreRefused.resolve();
        return reply;
      });
      await Promise.all([mostAreRefused.promise, blocked.arrivals(allowed)]);
      blocked.answer();
      const replies = await Promise.all(runs);
      assert.equal(blocked.arrived(), allowed, "the number of calls that the limit allows");
      assert.equal(replies.filter(({ status }) => status === 200).length, allowed);
      return { refused, again: await run(somebody, request) };
    } finally {
      await shop.close();
      await blocked.close();
    }
  };

  test("runs at once with a budget for 10: 10 calls, and unused budget is available again", async () => {
    const { refused, again } = await runTogether(isFullSize ? 50 : 15, 10, { monthlyBudget: 0.11 });
    for (const reply of refused) assertError(reply, 429, "KEY_BUDGET_EXCEEDED");
    assert.equal(again.status, 200);
  });

  test("runs at once with maxConcurrency 3: 3 calls", async () => {
    const { refused, again } = await runTogether(runs(50), 3, { maxConcurrency: 3 });
    for (const reply of refused) assertError(reply, 429, "KEY_CONCURRENCY_LIMIT");
    assert.equal(again.status, 200);
  });
});

suite("reservation that is not committed", () => {
  const refusalAfter = async (keyFields: Record<string, unknown>) => {
    const key = await createProviderKey(owner, keyFields);
    const { ctx } = market.service;
    let second: ReturnType<typeof openCall> | undefined;
    await ctx.db.transaction().execute(async (tx) => {
      assert.equal((await openCall(key, { ctx: { ...ctx, db: tx } })).refusedBy, null);
      second = openCall(key);
      await Promise.race([
        waitForBlockedStatements(market),
        second.then(() => assert.fail("it did not wait")),
      ]);
    });
    return (await second!).refusedBy;
  };

  test("key with limits: the next call waits for it and counts it", async () => {
    assert.equal(await refusalAfter({ maxConcurrency: 1 }), "KEY_CONCURRENCY_LIMIT");
    assert.equal(await refusalAfter({ monthlyBudget: 0.01 }), "KEY_BUDGET_EXCEEDED");
  });

  test("key without limits: the next call does not wait", async () => {
    const key = await createProviderKey(owner);
    const { ctx } = market.service;
    await ctx.db.transaction().execute(async (tx) => {
      for (const db of [tx, ctx.db])
        assert.equal((await openCall(key, { ctx: { ...ctx, db } })).refusedBy, null);
    });
  });
});

suite("monthly budget", () => {
  test("open calls: reserve their highest cost; ended calls count their real cost", async () => {
    const key = await createProviderKey(owner, { monthlyBudget: 0.02 });
    const { calls, codes } = await refusals(key, 20);
    assert.deepEqual(codes, Array(18).fill("KEY_BUDGET_EXCEEDED"));
    for (const call of calls.filter(({ refusedBy }) => !refusedBy)) {
      assert.equal((await call.answers()).cost.estimatedCost, COST_USD);
    }
    await expectRefusal(key, null);
    assert.equal(
      (await refusals(key, 1)).codes.length,
      1,
      "0.0105 spent and 0.01 expected are more than 0.02",
    );
  });

  test("call that just fits: is accepted; with nothing left every call is refused", async () => {
    const key = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const call = await openCall(key);
    assert.equal(call.refusedBy, null);
    assert.equal((await openCall(key, { maxTokens: 0 })).refusedBy, "KEY_BUDGET_EXCEEDED");
    await call.answers();
  });

  test("failed call: releases its reservation, except for reported usage", async () => {
    const key = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const facts = { provider: "openai" as const, attempts: 1 };
    for (const error of [new ProviderError("PROVIDER_ERROR", facts), new Error("given up")]) {
      const call = await openCall(key);
      await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
      await call.fails(error);
    }
    const filtered = await openCall(key);
    await filtered.fails(new ProviderError("CONTENT_FILTERED", { ...facts, usage: USAGE }));
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
  });

  test("model without a known price: no call is refused", async () => {
    const baseUrl = "https://models.example.com/v1";
    const key = await createProviderKey(owner, {
      provider: "openai-compatible",
      baseUrl,
      monthlyBudget: 0.01,
    });
    assert.deepEqual((await refusals(key, 20)).codes, []);
  });

  test("set while calls are open: counts their cost when they end", async () => {
    const key = await createProviderKey(owner);
    const { calls } = await refusals(key, 3);
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 0.02 });
    for (const call of calls) await call.answers();
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
  });

  const spentOf = async (key: string) => {
    const { rows } = await market.query("select spent_usd from provider_keys where id = $1", [
      toUuid("pkey", key),
    ]);
    return Number(rows[0].spent_usd);
  };

  test("set: counts the earlier calls of the month before the next call", async () => {
    const key = await createProviderKey(owner);
    for (const _ of [1, 2, 3]) await expectRefusal(key, null);
    assert.equal(await spentOf(key), 0);
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 0.02 });
    assert.equal(await spentOf(key), 3 * COST_USD);
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: null });
    await expectRefusal(key, null);
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 0.02 });
    assert.equal(await spentOf(key), 4 * COST_USD);
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
  });

  test("set repeatedly while calls end: counts each call once", async () => {
    const key = await createProviderKey(owner);
    const { calls } = await refusals(key, 20);
    const setAgain = async () => {
      for (const monthlyBudget of [1, null, 2])
        assert.equal((await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget })).status, 200);
    };
    const countInBatches = async () => {
      for (let n = 0; n < 20; n++)
        await countCalls(market.service.ctx.db, toUuid("pkey", key)!, monthStartOf(market.clock.now), 3);
    };
    await Promise.all([
      ...calls.map((call) => call.answers()),
      setAgain(),
      setAgain(),
      countInBatches(),
      countInBatches(),
    ]);
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 2 });
    await expectRefusal(key, null);
    assert.equal(await spentOf(key), 20 * COST_USD);
  });

  test("call over the end of a month: counts in the UTC month in which it began", async () => {
    market.clock.now = new Date("2026-12-31T23:59:59.999Z");
    const key = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const call = await openCall(key);
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
    market.clock.now = new Date("2027-01-01T00:00:00.000Z");
    await call.answers();
    await expectRefusal(key, null);
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
  });

  test("process with a slow clock at the start of a month: neither resets nor counts twice", async () => {
    market.clock.now = new Date("2027-02-01T00:00:00.100Z");
    const key = await createProviderKey(owner, { monthlyBudget: 0.02 });
    for (const _ of [1, 2, 3]) await expectRefusal(key, null);
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
    const behind = { ...market.service.ctx, now: () => new Date("2027-01-31T23:59:59.900Z") };
    assert.equal((await openCall(key, { ctx: behind })).refusedBy, "KEY_BUDGET_EXCEEDED");
    await owner.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 0.03 });
    assert.equal(await spentOf(key), 3 * COST_USD);
    await expectRefusal(key, null);
  });

  test("random calls within their expected cost: never exceed the budget", async () => {
    const step = fc.oneof(
      fc.record({ does: fc.constant("begin" as const), maxTokens: fc.integer({ min: 1, max: 1_500 }) }),
      fc.record({
        does: fc.constant("end" as const),
        which: fc.nat(),
        share: fc.integer({ min: 0, max: 100 }),
      }),
      fc.record({ does: fc.constant("die" as const), which: fc.nat() }),
    );
    const budget = 2_000;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const key = await createProviderKey(owner, { monthlyBudget: 0.02 });
        // In output tokens, of which 1,000 cost 0.01 USD.
        let spent = 0;
        const open: { call: Awaited<ReturnType<typeof openCall>>; maxTokens: number }[] = [];
        for (const step of steps) {
          if (step.does === "begin") {
            const call = await openCall(key, step);
            const reserved = open.reduce((sum, { maxTokens }) => sum + maxTokens, 0);
            const fits =
              spent < budget && reserved + spent < budget && reserved + spent + step.maxTokens <= budget;
            assert.equal(call.refusedBy, fits ? null : "KEY_BUDGET_EXCEEDED");
            if (fits) open.push({ call, maxTokens: step.maxTokens });
          } else if (open.length > 0) {
            const [{ call, maxTokens }] = open.splice(step.which % open.length, 1) as [(typeof open)[0]];
            const completionTokens = step.does === "end" ? Math.floor((maxTokens * step.share) / 100) : 0;
            if (step.does === "die") await call.fails(new Error("gone"));
            else await call.answers({ promptTokens: 0, completionTokens, totalTokens: completionTokens });
            spent += completionTokens;
          }
          assert.ok(spent <= budget);
        }
      }),
      { numRuns: runs(15) },
    );
  });
});

suite("call of a dead process", () => {
  test("before its lease expires: holds budget and concurrency", async () => {
    const budgeted = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const narrow = await createProviderKey(owner, { maxConcurrency: 1 });
    for (const key of [budgeted, narrow]) assert.deepEqual((await refusals(key, 1)).codes, []);
    market.clock.forward(LEASE_MS - 1);
    await expectRefusal(budgeted, "KEY_BUDGET_EXCEEDED");
    await expectRefusal(narrow, "KEY_CONCURRENCY_LIMIT");
    market.clock.forward(1);
    await expectRefusal(budgeted, null);
    await expectRefusal(narrow, null);
  });

  test("late end: its cost counts", async () => {
    const key = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const late = await openCall(key);
    market.clock.forward(LEASE_MS);
    await late.answers();
    await expectRefusal(key, "KEY_BUDGET_EXCEEDED");
  });
});

suite("concurrency", () => {
  test("prompt runs and other calls: share the limit", async () => {
    const key = await createProviderKey(owner, { maxConcurrency: 1 });
    const call = await openCall(key);
    assertError(await run(owner, { productId, apiKeyId: key }), 429, "KEY_CONCURRENCY_LIMIT");
    await call.answers();
    await expectRefusal(key, null);
  });

  test("several processes: share the limit", async () => {
    const other = await market.startNode();
    const key = await createProviderKey(owner, { maxConcurrency: 3 });
    const calls = await Promise.all(
      Array.from({ length: 20 }, (_, at) => openCall(key, at % 2 ? { ctx: other.ctx } : {})),
    );
    assert.equal(calls.filter(({ refusedBy }) => refusedBy === null).length, 3);
  });
});

test("key deleted before the call: the call is refused", async () => {
  const key = await createProviderKey(owner);
  const { ctx } = market.service;
  const found = await findUsableKey(ctx, { userId: owner.userId } as Member, key);
  await owner.delete(`/v1/ai/keys/${key}`);
  const call = callWithKey(ctx, {
    key: found,
    executionId: ctx.newId(),
    model: "gpt-4o",
    messages: [],
    options: {},
    signal: new AbortController().signal,
  });
  await assert.rejects(call, { code: "PROVIDER_KEY_NOT_FOUND" });
});

test("run with limits: as many statements as a run without", async () => {
  const statementsWith = async (limits: Record<string, unknown>) => {
    const apiKeyId = await createProviderKey(owner, limits);
    await run(owner, { productId, apiKeyId, options });
    const statements = await statementsOf(() => run(owner, { productId, apiKeyId, options }));
    return statements.filter((text) => /provider_keys|provider_call|executions/.test(text));
  };
  const unlimited = await statementsWith({});
  assert.equal(unlimited.length, 2, "begin the run, end the run");
  assert.deepEqual(await statementsWith({ monthlyBudget: 5, maxConcurrency: 5 }), unlimited);
});

test("calls older than any budget: are deleted", async () => {
  const key = await createProviderKey(owner);
  await expectRefusal(key, null);
  const { ctx } = market.service;
  const count = async () =>
    (await market.query("select count(*)::int as count from provider_calls")).rows[0].count;
  await deleteOldCalls(ctx);
  assert.ok((await count()) > 0);
  market.clock.forward(63 * 86_400_000);
  await deleteOldCalls(ctx);
  assert.equal(await count(), 0);
});
