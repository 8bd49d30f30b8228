import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { sql } from "kysely";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { callTogether } from "../../../test/held-calls.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import {
  createProviderKey,
  newestRun,
  providersAt,
  run,
  runToCompletion,
  startBlockedProvider,
} from "../../../test/runs.ts";
import { statementsOf, statementsOfProcess } from "../../../test/statements.ts";
import { until } from "../../../test/until.ts";
import { toUuid } from "../../core/ids.ts";
import { RunTargets } from "./run-targets.ts";

let provider: ProviderServer;
let blocked: Awaited<ReturnType<typeof startBlockedProvider>>;
let market: Market;
let author: Client;
let buyer: Client;
let productId: string;
let apiKeyId: string;
before(async () => {
  provider = await startProviderServer();
  blocked = await startBlockedProvider();
  const { baseUrls, ...others } = providersAt(provider);
  market = await openMarket({ providers: { ...others, baseUrls: { ...baseUrls, openrouter: blocked.url } } });
  author = await market.createUser({ name: "Author" });
});
beforeEach(async () => {
  buyer = await market.createUser({ name: "Buyer" });
  productId = await createProduct(author);
  await buyProduct(buyer, productId);
  apiKeyId = await createProviderKey(buyer);
});
after(async () => {
  await market.close();
  await provider.close();
  await blocked.close();
});

const READ = ["find_product_for_reader", "find_provider_key"];

/** The names of the prepared statements, and the texts of others, without the receipt of the purchase, which is sent meanwhile. */
async function namesOf(work: () => Promise<unknown>, record = statementsOf): Promise<string[]> {
  const texts = (await record(work)).filter(
    (text) => /product|provider_|executions|entitlements/.test(text) && !/\borders\b|"emails"/.test(text),
  );
  return texts.map((text) =>
    /try_outs t left join/.test(text)
      ? "find_product_for_reader"
      : (/^-- prepared: (\w+)/.exec(text)?.[1] ?? text),
  );
}

async function change(values: object, caller = author) {
  const reply = await caller.patch(`/v1/products/${productId}`, values);
  assert.equal(reply.status, 200, reply.text);
}

/** Runs until the target is remembered: the first run records the first use, the second one reads it. */
async function remember(caller = buyer, request: object = {}) {
  for (let n = 0; n < 2; n++) await runToCompletion(caller, { productId, apiKeyId, ...request });
}

const runAgain = (request: object = {}) => run(buyer, { productId, apiKeyId, ...request });

test("repeated run: two statements, the first of which confirms the target and begins the run", async () => {
  const first = await namesOf(() => runAgain());
  assert.deepEqual(first.slice(0, 3).toSorted(), ["begin_run", ...READ].toSorted());
  await runAgain();
  const repeated = ["begin_remembered_run", "end_run"];
  assert.deepEqual(await namesOf(() => runAgain()), repeated);
  // Other variables, and a key with limits, need no more.
  const sent = { variables: { topic: "snow" } };
  assert.deepEqual(await namesOf(() => runAgain(sent)), repeated);
  await buyer.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: 5, maxConcurrency: 5 });
  await runAgain();
  assert.deepEqual(await namesOf(() => runAgain()), repeated);
});

test("repeated run in the sandbox: two statements", async () => {
  await remember(buyer, { apiKeyId: "sandbox" });
  assert.deepEqual(await namesOf(() => runAgain({ apiKeyId: "sandbox" })), [
    "begin_remembered_run_without_key",
    "end_run",
  ]);
});

test("target that has changed: one statement finds it out, then the run is as after a restart", async () => {
  await remember();
  await change({ title: "Another title" });
  assert.deepEqual((await namesOf(() => runAgain())).toSorted(), [
    "begin_remembered_run",
    "begin_run",
    "end_run",
    ...READ,
  ]);
  assert.equal((await newestRun(buyer)).status, "completed");
});

/** The rows of all runs with the key and of their calls, without what differs between equal runs. */
const rowsWith = async (keyId: string) => {
  const { rows } = await market.query(
    `select distinct to_jsonb(e) - '{id,created_at,lease_until,completed_at,duration_ms,sealed_texts}'::text[] as run,
            e.sealed_texts is null as "isEmpty", e.completed_at is null as "isOpen",
            to_jsonb(c) - '{id,execution_id,started_at,lease_until,ended_at}'::text[] as call, c.ended_at is null as "isOpenCall"
       from executions e join provider_calls c on c.execution_id = e.id where e.provider_key_id = $1`,
    [toUuid("pkey", keyId)],
  );
  return rows;
};

test("parallel runs: share statements, write what they write alone, and a run without its right is refused", async (t) => {
  const other = await market.createUser({ name: "Other" });
  await buyProduct(other, productId);
  const otherKeyId = await createProviderKey(other);
  await remember();
  await remember(other, { apiKeyId: otherKeyId });
  const setStatus = (status: string) =>
    market.query("update entitlements set status = $1 where buyer_id = $2", [status, other.userId]);
  await setStatus("held");
  const before = await rowsWith(apiKeyId);
  const sent = provider.requests.length;
  const runAll = async () => {
    const sending = Array.from({ length: 20 }, () => runAgain());
    const refused = run(other, { productId, apiKeyId: otherKeyId });
    for (const { status, text } of await Promise.all(sending)) assert.equal(status, 200, text);
    assertError(await refused, 403, "UNAUTHORIZED");
  };
  callTogether(t, market.service.ctx.runWriter, "begin", 21);
  const names = await namesOf(runAll);
  await setStatus("active");
  assert.equal(provider.requests.length, sent + 20);
  assert.ok(names.includes("begin_runs"), names.join(" "));
  // 20 begin and 20 end; the refused one is written alone and reads its target.
  assert.ok(names.length < 40, names.join(" "));
  assert.deepEqual(await rowsWith(apiKeyId), before);
  assert.equal((await newestRun(buyer)).status, "completed");
  assert.ok(
    !market.logs.some((line) => line.includes("PostgreSQL refused")),
    market.logs.filter((line) => line.includes("PostgreSQL refused")).join(""),
  );
});

test("run whose row is locked: runs that end with it do not wait for it", async (t) => {
  const keyId = await createProviderKey(buyer, { provider: "openrouter" });
  let completed = 0;
  const runs = Array.from({ length: 12 }, async () => {
    const reply = await run(buyer, { productId, apiKeyId: keyId });
    assert.equal(reply.status, 200, reply.text);
    completed++;
  });
  await blocked.arrivals(runs.length);
  // The runs began before.
  const names = await namesOf(async () => {
    await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx);
      await sql`select from executions where provider_key_id = ${toUuid("pkey", keyId)} order by id desc limit 1 for update`.execute(
        tx,
      );
      callTogether(t, market.service.ctx.runWriter, "end", runs.length);
      blocked.answer();
      await until("all other runs have ended", () => completed === runs.length - 1);
    });
    await Promise.all(runs);
  }, statementsOfProcess);
  assert.ok(names.includes("end_runs"), names.join(" "));
  for (const { isOpen, isOpenCall } of await rowsWith(keyId)) assert.ok(!isOpen && !isOpenCall);
});

suite("a change between two runs: the next run has it", () => {
  test("refund: 403", async () => {
    await remember();
    await market.query("update entitlements set used_at = null where product_id = $1", [
      toUuid("prod", productId),
    ]);
    await refundEverything(market, buyer);
    assertError(await runAgain(), 403, "UNAUTHORIZED");
  });

  test("held entitlement: 403", async () => {
    await remember();
    const setStatus = (status: string) =>
      market.query("update entitlements set status = $1 where product_id = $2", [
        status,
        toUuid("prod", productId),
      ]);
    await setStatus("held");
    assertError(await runAgain(), 403, "UNAUTHORIZED");
    await setStatus("active");
    assert.equal((await runAgain()).status, 200);
  });

  test("new version of the bought line: its content", async () => {
    await remember(buyer, { apiKeyId: "sandbox" });
    await change({ content: "New text on {{topic}} in {{language=English}}" });
    const { output, metadata } = await runToCompletion(buyer, {
      productId,
      apiKeyId: "sandbox",
      options: { model: "sandbox-echo" },
    });
    assert.match(output, /New text on rain/);
    assert.equal(metadata.productVersion, "1.1.0");
  });

  test("variable that the new version no longer requires: is not refused", async () => {
    await remember();
    assertError(await runAgain({ variables: {} }), 422, "VALIDATION_ERROR", "variables.topic");
    await change({ content: "Write a haiku about {{topic=snow}} in {{language=English}}." });
    assert.equal((await runAgain({ variables: {} })).status, 200);
  });

  test("withdrawal as malicious: PRODUCT_UNAVAILABLE", async () => {
    await remember();
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const reply = await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "malicious" });
    assert.equal(reply.status, 200, reply.text);
    assertError(await runAgain(), 409, "PRODUCT_UNAVAILABLE");
  });

  test("new secret of the key: is used; deleted key: 404", async () => {
    await remember();
    await buyer.patch(`/v1/ai/keys/${apiKeyId}`, { key: "sk-another-key" });
    assertError(await runAgain(), 424, "PROVIDER_KEY_INVALID");
    await buyer.delete(`/v1/ai/keys/${apiKeyId}`);
    assertError(await runAgain(), 404, "PROVIDER_KEY_NOT_FOUND");
  });

  test("budget on the key: is enforced", async () => {
    await remember();
    const changed = await buyer.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: 0.01 });
    assert.equal(changed.status, 200, changed.text);
    const dear = { options: { model: "gpt-5-mini", maxTokens: 100_000 } };
    assertError(await runAgain(dear), 429, "KEY_BUDGET_EXCEEDED");
  });

  test("author's draft: its new text; deleted: 404", async () => {
    productId = await createDraft(author);
    await remember(author, { apiKeyId: "sandbox" });
    await change({ content: "Changed {{topic}} in {{language=English}}" });
    const request = { productId, apiKeyId: "sandbox", options: { model: "sandbox-echo" } };
    assert.match((await runToCompletion(author, request)).output, /Changed rain/);
    await author.delete(`/v1/products/${productId}`);
    assertError(await run(author, request), 404, "PRODUCT_NOT_FOUND");
  });
});

test("Idempotency-Key with a changed target: one run, and a repeat returns it", async () => {
  await remember();
  await change({ title: "Yet another title" });
  const sent = provider.requests.length;
  const headers = { "idempotency-key": "changed-target" };
  const first = await run(buyer, { productId, apiKeyId }, headers);
  const again = await run(buyer, { productId, apiKeyId }, headers);
  assert.equal(first.status, 200, first.text);
  assert.equal(again.body.data.executionId, first.body.data.executionId);
  assert.equal(provider.requests.length, sent + 1);
});

test("any sequence of runs: remembers the last ones within its limits", () => {
  const targetOf = (n: number, characters: number) =>
    ({
      product: { id: String(n), reason: "author", usedAt: null, content: "x".repeat(characters) },
      key: { id: null },
    }) as never;
  const runs = fc.array(fc.tuple(fc.nat(40), fc.nat(1_200_000)), { maxLength: 60 });
  fc.assert(
    fc.property(runs, (sequence) => {
      const targets = new RunTargets();
      const model = new Map<number, number>();
      for (const [n, characters] of sequence) {
        const request = { productId: String(n), apiKeyId: "sandbox" };
        targets.remember({ userId: "u" }, request, targetOf(n, characters));
        model.delete(n);
        model.set(n, characters);
        while ([...model.values()].reduce((sum, size) => sum + size, 0) > 4 * 1024 * 1024)
          model.delete(model.keys().next().value!);
      }
      for (let n = 0; n <= 40; n++) {
        const found = targets.find({ userId: "u" }, { productId: String(n), apiKeyId: "sandbox" });
        assert.equal(found?.product.content.length, model.get(n));
      }
    }),
  );
});
