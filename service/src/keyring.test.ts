import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { sql } from "kysely";
import { enableTwoFactor } from "../test/authenticator.ts";
import { requestMagicLink, uniqueEmail } from "../test/emails.ts";
import { sandboxRequest, startEvaluation, storeTestSet, untilEvaluated } from "../test/evaluations.ts";
import { createProduct } from "../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../test/market.ts";
import { GOOD_KEY, type ProviderServer, startProviderServer } from "../test/provider-server.ts";
import { createProviderKey, providersAt, run, runToCompletion } from "../test/runs.ts";
import { createWorkflow, echoStep, executeWorkflow, startWorker } from "../test/workflows.ts";
import { loadSigningKeys } from "./accounts/oauth/signing-keys.ts";
import { runChecks } from "./backoffice/operator/doctor.ts";
import { flushViews } from "./catalog/search/views.ts";
import { daysAfter } from "./core/dates.ts";
import { toUuid } from "./core/ids.ts";
import { createVault, type MasterKey, type Vault } from "./core/vault.ts";
import { findOrCreateSigningKey } from "./execution/run-receipts/signing-keys.ts";
import { rotateKeyring, sealedColumns } from "./keyring.ts";
import { claimInstallation, installationOf } from "./platform/db/installation.ts";
import { countSealed, type SealedColumn } from "./platform/db/sealed-columns.ts";

const keyOf = (id: string): MasterKey => ({ id, bytes: randomBytes(32) });
const nameOf = ({ table, column }: SealedColumn) => `${table}.${column}`;

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
/** The key that seals, and those before it. */
let ring: MasterKey[] = [keyOf("k0")];
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ config: { masterKeys: ring }, providers: providersAt(provider) });
  owner = await market.createUser();
  productId = await createProduct(owner);
});
after(async () => {
  await market.close();
  await provider.close();
});

/** A new key in front of the ring, as after a restart of all processes. */
function takesNewKey(): Vault {
  ring = [keyOf(`k${ring.length}`), ...ring];
  market.service.ctx.vault = createVault(ring);
  return market.service.ctx.vault;
}

interface Text {
  column: SealedColumn;
  sealed: string;
  bound: Record<string, string>;
  context: string;
}

async function textsOf(column: SealedColumn): Promise<Text[]> {
  const bound = Object.entries(column.bound).map(([name, text]) => `'${name}', (${text})::text`);
  const { rows } = await market.query(
    `select ${column.column} as sealed, json_build_object(${bound}) as bound from ${column.table} t where ${column.column} <> ''`,
  );
  return rows.map(({ sealed, bound }) => ({ column, sealed, bound, context: column.contextOf(bound) }));
}

const allTexts = async () => (await Promise.all(sealedColumns.map(textsOf))).flat();

/** At least two rows of every column, made by those who keep them. */
async function keepsEverything() {
  const { ctx } = market.service;
  for (const _ of [1, 2]) {
    const apiKeyId = await createProviderKey(owner);
    const { executionId } = await runToCompletion(owner, { productId, apiKeyId });
    await owner.post(`/v1/ai/executions/${executionId}/share`);
    await run(owner, { productId }, { "idempotency-key": ctx.newId() });
    await requestMagicLink(market, uniqueEmail());
    await enableTwoFactor(market, await market.createSession((await market.createUser()).userId));
    const hook = await owner.post("/v1/webhooks", { url: "https://hooks.example.com" });
    assert.equal(hook.status, 201, hook.text);
    await (await market.createUser()).get(`/v1/products/${productId}`);
    await flushViews(ctx);
    market.clock.forward(86_400_000);
  }
  await loadSigningKeys(ctx);
  for (const days of [-400, 0])
    await findOrCreateSigningKey({ ...ctx, now: () => daysAfter(ctx.now(), days) });
  await runsWorkflows();
}

/** One that runs another. */
async function runsWorkflows() {
  const worker = startWorker(market);
  const inner = await createWorkflow(owner, { steps: [echoStep("a", "x")] });
  const workflowId = await createWorkflow(owner, { steps: [{ id: "b", type: "product", productId: inner }] });
  for (const _ of [1, 2]) {
    const { status } = await executeWorkflow(owner, workflowId, { webhookUrl: "http://127.0.0.1:9/" });
    assert.equal(status, "completed");
  }
  const rubric = { type: "llm-rubric", value: 'Names "rain"' };
  await storeTestSet(owner, productId, [{ title: "Rain", input: { topic: "rain" }, assert: [rubric] }]);
  const judged = { ...sandboxRequest, judge: { apiKeyId: "sandbox" } };
  await untilEvaluated(market, owner, await startEvaluation(owner, productId, judged));
  await worker.stop();
}

test("every column of sealed texts is known to the keyring", async () => {
  const { rows } = await market.query(
    "select table_name || '.' || column_name as name from information_schema.columns where column_name like 'sealed%' order by 1",
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    sealedColumns.map(nameOf).sort(),
  );
});

suite("a rotation", () => {
  before(keepsEverything);

  test("puts every text under the new key, and every text stays what it was", async () => {
    const before = createVault(ring);
    const opened = async (vault: Vault) =>
      (await allTexts()).map(({ sealed, context }) => vault.open(sealed, context)).sort();
    const was = await opened(before);
    for (const column of sealedColumns) assert.ok((await textsOf(column)).length >= 2, nameOf(column));
    const vault = takesNewKey();
    const done = await rotateKeyring(market.service.ctx);
    assert.equal(done.rewrapped, was.length);
    assert.deepEqual(done.others, [{ key: "k0", texts: 0, isInRing: true }]);
    assert.deepEqual(await opened(createVault(ring.slice(0, 1))), was, "the new key is enough");
    assert.deepEqual((await rotateKeyring(market.service.ctx)).rewrapped, 0);
    assert.equal(vault.keyIds[0], done.key);
  });

  test("leaves no text under another key anywhere in the database", async () => {
    takesNewKey();
    const { others } = await rotateKeyring(market.service.ctx);
    const old = others.map(({ key }) => key).join("|");
    const { rows } = await market.query(
      "select table_name, column_name from information_schema.columns where table_schema = 'public' and data_type in ('text', 'jsonb', 'json')",
    );
    const held = rows.map(
      ({ table_name, column_name }) =>
        `select '${table_name}.${column_name}' as name from ${table_name} where ${column_name}::text ~ 'v1\\.(${old})\\.[A-Za-z0-9_-]{80}'`,
    );
    assert.deepEqual((await market.query(held.join(" union all "))).rows, []);
  });

  test("gives the installation to the new key, once the old one holds nothing", async () => {
    const { ctx } = market.service;
    const claim = (masterKeys: MasterKey[]) =>
      claimInstallation(ctx.db, installationOf({ ...ctx.config, masterKeys }), ctx.now());
    takesNewKey();
    await assert.rejects(claim(ring.slice(0, 1)), /lacks the key/);
    await rotateKeyring(ctx);
    await claim(ring.slice(0, 1));
    await assert.rejects(claim(ring.slice(1)), /lacks the key/);
  });

  test("goes on with what is left when it was killed in its midst", async () => {
    await market.query(
      `insert into idempotency_keys (caller, route, key, request_digest, lease_token, lease_until, status, sealed_body, created_at)
       select 'x', 'y', n::text, '', gen_random_uuid(), $1, 200, s, $1 from unnest($2::text[]) with ordinality as v(s, n)`,
      [
        market.clock.now,
        Array.from({ length: 450 }, (_, at) => createVault(ring).seal(`${at}`, `idempotency|x|y|${at + 1}`)),
      ],
    );
    const total = (await allTexts()).length;
    const vault = takesNewKey();
    let rewraps = 0;
    const dying: Vault = {
      ...vault,
      get keyIds() {
        if (rewraps > 250) throw new Error("killed");
        return vault.keyIds;
      },
      rewrap(sealed, context) {
        rewraps++;
        return vault.rewrap(sealed, context);
      },
    };
    const { ctx } = market.service;
    await assert.rejects(rotateKeyring({ ...ctx, vault: dying }), /killed/);
    const done = await rotateKeyring(ctx);
    assert.ok(done.rewrapped > 0 && done.rewrapped < total, `${done.rewrapped} of ${total}`);
    for (const { sealed, context } of await allTexts()) createVault(ring.slice(0, 1)).open(sealed, context);
  });

  test("loses no change that is made meanwhile", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => createProviderKey(owner)));
    takesNewKey();
    const { ctx } = market.service;
    const changes = ids.map((id, at) =>
      owner.patch(`/v1/ai/keys/${id}`, at % 2 ? { key: `${GOOD_KEY}-${at}` } : { name: `Key ${at}` }),
    );
    const [done] = await Promise.all([rotateKeyring(ctx), ...changes]);
    assert.ok(done.others.every(({ texts }) => texts === 0));
    const { rows } = await market.query("select id, user_id, name, sealed_key from provider_keys");
    const texts = rows.map(({ id, user_id, name, sealed_key }) => [
      name,
      createVault(ring.slice(0, 1)).open(sealed_key, `provider-key|${user_id}|${id}`),
    ]);
    for (const at of ids.keys()) {
      if (at % 2) assert.ok(texts.some(([, secret]) => secret === `${GOOD_KEY}-${at}`));
      else assert.ok(texts.some(([name, secret]) => name === `Key ${at}` && secret === GOOD_KEY));
    }
  });

  test("passes over a row that somebody holds, and waits for nobody", async () => {
    takesNewKey();
    const { ctx } = market.service;
    const free = Promise.withResolvers<void>();
    const holds = Promise.withResolvers<void>();
    const holder = ctx.db.transaction().execute(async (tx) => {
      await sql`select from provider_keys order by id limit 1 for update`.execute(tx);
      holds.resolve();
      await free.promise;
    });
    await holds.promise;
    const held = await rotateKeyring(ctx);
    assert.equal(held.others.find(({ key }) => key === ring[1]!.id)!.texts, 1);
    free.resolve();
    await holder;
    const done = await rotateKeyring(ctx);
    assert.deepEqual([done.rewrapped, done.others.every(({ texts }) => texts === 0)], [1, true]);
  });
});

suite("a sealed text", () => {
  test("of any column does not open in another row of it, nor is it rewrapped there", async () => {
    const vault = createVault(ring);
    for (const column of sealedColumns) {
      const [one, other] = await textsOf(column);
      assert.throws(() => vault.open(one!.sealed, other!.context), nameOf(column));
      assert.throws(() => vault.rewrap(one!.sealed, other!.context), nameOf(column));
    }
  });

  test("does not open for another account than the one that its row belongs to", async () => {
    const other = await market.createUser();
    const vault = createVault(ring);
    const owned = sealedColumns.filter(({ bound }) => "userId" in bound);
    assert.ok(owned.length >= 4);
    for (const column of owned) {
      const [text] = await textsOf(column);
      const moved = column.contextOf({ ...text!.bound, userId: other.userId });
      assert.ok(vault.open(text!.sealed, text!.context));
      assert.throws(() => vault.open(text!.sealed, moved), nameOf(column));
    }
  });

  test("of an execution that was given to another account is not shown to them", async () => {
    const { executionId } = await runToCompletion(owner, {
      productId,
      apiKeyId: await createProviderKey(owner),
    });
    const thief = await market.createUser();
    await market.query("update executions set user_id = $1 where id = $2", [
      thief.userId,
      toUuid("exec", executionId),
    ]);
    assertError(await thief.get(`/v1/ai/executions/${executionId}`), 500, "INTERNAL_ERROR");
    await market.query("update executions set user_id = $1 where id = $2", [
      owner.userId,
      toUuid("exec", executionId),
    ]);
    const { body } = await owner.get(`/v1/ai/executions/${executionId}`);
    assert.equal(body.data.output, "An answer.");
  });
});

suite("the doctor", () => {
  const finding = async (masterKeys: MasterKey[]) => {
    const { config } = market.service.ctx;
    const place = { config: { ...config, masterKeys }, target: market.target };
    const found = await runChecks(place);
    return found.find(({ check }) => check === "keyring")!;
  };

  test("tells how much is under which key, and when a rotation is due", async () => {
    await rotateKeyring(market.service.ctx);
    const count = (await countSealed(market.service.ctx.db, sealedColumns)).get(ring[0]!.id)!;
    const [old] = ring;
    assert.deepEqual(await finding([old!]), {
      check: "keyring",
      ok: true,
      note: `${count} under ${old!.id}`,
    });
    const due = await finding([keyOf("next"), old!]);
    assert.equal(due.warning, true);
    assert.match(
      due.note,
      new RegExp(`^0 under next, ${count} under ${old!.id}: run stoa-server keyring rotate$`),
    );
  });

  test("fails where a key is missing that holds something", async () => {
    const { ok, note } = await finding([keyOf("next")]);
    assert.equal(ok, false);
    assert.match(note, new RegExp(`under ${ring[0]!.id}, which is not in the keyring`));
  });

  test("and a rotation say what no key of the ring can open, and the rest goes on", async () => {
    const lost = keyOf("lost");
    const id = await createProviderKey(owner);
    await market.query("update provider_keys set sealed_key = $1 where name = 'Key' and sealed_key <> ''", [
      createVault([lost]).seal("x", "nobody's"),
    ]);
    takesNewKey();
    const { rewrapped, others } = await rotateKeyring(market.service.ctx);
    assert.ok(rewrapped > 0);
    const { texts } = others.find(({ key }) => key === "lost")!;
    assert.ok(texts > 0);
    assert.deepEqual(
      others.filter((other) => other.texts > 0),
      [{ key: "lost", texts, isInRing: false }],
    );
    assert.match(id, /^pkey_/);
  });
});
