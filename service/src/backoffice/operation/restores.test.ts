import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { backUpTo, PASSPHRASE, shopOf } from "../../../test/backup-files.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { send, uploadFile } from "../../../test/uploads.ts";
import { verifyLedger } from "../../commerce/ledger/verification.ts";
import { listScheduledJobs } from "../../jobs.ts";
import { createFirstAdminLink } from "../admin/first-admin.ts";
import { removeReceivedBackups, TABLES_BEFORE_ACCOUNTS } from "./restores.ts";

let shop: Market;
let seller: Client;
let productId: string;
let archive: Buffer;
before(async () => {
  shop = await openMarket();
  seller = await shop.createUser();
  productId = await createProduct(seller);
  await uploadFile(seller, productId);
  await buyProduct(await shop.createUser(), productId);
  const path = join(shop.service.ctx.config.dataDir, "shop.tar.gz");
  await backUpTo(path, shopOf(shop), { passphrase: PASSPHRASE });
  archive = await readFile(path);
});
after(() => shop.close());

/** A service without any account, with the keys of the shop. */
async function openEmpty(t: TestContext, keys: "same" | "other" = "same") {
  const { masterKeys, sessionKeys } = shop.service.ctx.config;
  const market = await openMarket(keys === "same" ? { config: { masterKeys, sessionKeys } } : {});
  t.after(() => market.close());
  const link = await createFirstAdminLink(market.service.ctx);
  return { market, visitor: market.as(null), token: link?.split("#token=")[1] ?? "" };
}
type Empty = Awaited<ReturnType<typeof openEmpty>>;

const RESTORES = "/api/auth/restores";
const begin = ({ visitor, token }: Empty, size: number, fileName = "shop.tar.gz") =>
  visitor.post(RESTORES, { token, fileName, size });
const part = ({ visitor }: Empty, id: string, offset: number, bytes: Buffer): Promise<Reply> =>
  send(visitor, `${RESTORES}/${id}/parts`, {
    name: "part",
    bytes: new Uint8Array(bytes),
    fields: { offset: String(offset) },
  });

async function sendAll(empty: Empty, bytes: Buffer): Promise<string> {
  const reply = await begin(empty, bytes.length);
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  const half = Math.floor(bytes.length / 2);
  for (const [offset, end] of [
    [0, half],
    [half, bytes.length],
  ] as const) {
    const sent = await part(empty, id, offset, bytes.subarray(offset, end));
    assert.equal(sent.status, 200, sent.text);
    assert.equal(sent.body.data.received, end);
  }
  return id;
}

async function run({ visitor }: Empty, id: string, body: object = {}) {
  const reply = await visitor.post(`${RESTORES}/${id}/start`, body);
  assert.equal(reply.status, 200, reply.text);
  return becomes(
    async () => (await visitor.get(`${RESTORES}/${id}`)).body.data,
    ({ status }) => status === "succeeded" || status === "failed",
  );
}

suite("a restore over HTTP", { timeout: 120_000 }, () => {
  test("an empty installation becomes the shop of the backup", async (t) => {
    const empty = await openEmpty(t);
    const id = await sendAll(empty, archive);
    const restored = await run(empty, id);
    assert.equal(restored.status, "succeeded", restored.error);
    assert.ok(restored.result.rows > 10 && restored.result.files === 1);
    const { market } = empty;
    const reply = await market.as(seller.key).get(`/v1/products/${productId}`);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
    const { rows } = await market.query(
      "select details from audit_log where action = 'installation.restored'",
    );
    assert.equal(rows.length, 1);
    assertError(await begin(empty, 10), 401, "INVALID_TOKEN");
    assertError(await empty.visitor.post(`${RESTORES}/${id}/start`, {}), 409, "INVALID_STATE");
  });

  test("only with the token of the link, and without any account", async (t) => {
    const empty = await openEmpty(t);
    assertError(
      await empty.visitor.post(RESTORES, { token: "x", fileName: "a", size: 1 }),
      401,
      "INVALID_TOKEN",
    );
    for (const reply of [
      await empty.visitor.get(`${RESTORES}/unknown`),
      await empty.visitor.post(`${RESTORES}/unknown/start`, {}),
      await part(empty, "unknown", 0, Buffer.from("x")),
    ])
      assertError(reply, 404, "RESTORE_NOT_FOUND");
    const { config } = empty.market.service.ctx;
    config.processes = 2;
    const refused = await begin(empty, 10);
    assertError(refused, 409, "INVALID_STATE");
    assert.match(refused.body.error.message, /STOA_PROCESSES=1/);
    config.processes = 1;
    const id = await sendAll(empty, archive);
    await empty.market.createUser();
    assertError(await begin(empty, 10), 409, "INVALID_STATE");
    const late = await run(empty, id);
    assert.equal(late.status, "failed");
    assert.match(late.error, /has accounts/);
    assert.equal((await empty.market.query("select from users")).rows.length, 1);
  });

  test("hostile and broken files: a clear error, and nothing changes", async (t) => {
    const empty = await openEmpty(t);
    const cut = archive.subarray(0, archive.length - 100);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const cases: [Buffer, RegExp][] = [
      [Buffer.from("<?php echo 1; ?>"), /^shop\.tar\.gz cannot be restored: it was cut or altered/],
      [cut, /^shop\.tar\.gz cannot be restored/],
      [gzipSync(Buffer.from("no tar")), /cannot be restored/],
      [bomb, /cannot be restored/],
    ];
    for (const [bytes, why] of cases) {
      const { status, error, result } = await run(empty, await sendAll(empty, bytes));
      assert.deepEqual([status, result], ["failed", null]);
      assert.match(error, why);
    }
    assert.equal((await empty.market.query("select from installation")).rows.length, 1);
    const again = await run(empty, await sendAll(empty, archive));
    assert.equal(again.status, "succeeded", again.error);
  });

  test("of other keys: names what to set, and asks for the passphrase", async (t) => {
    const empty = await openEmpty(t, "other");
    const { error } = await run(empty, await sendAll(empty, archive));
    assert.match(error, /sealed by the master keys/);
    const wrong = await run(empty, await sendAll(empty, archive), { passphrase: "not this one at all" });
    assert.match(wrong.error, /does not open the keys/);
  });

  test("parts: in order, once each, not beyond the size; repeats are ignored", async (t) => {
    const empty = await openEmpty(t);
    const { id } = (await begin(empty, 10)).body.data;
    const five = Buffer.from("12345");
    assertError(await part(empty, id, 5, five), 422, "VALIDATION_ERROR");
    assert.equal((await part(empty, id, 0, five)).body.data.received, 5);
    assert.equal((await part(empty, id, 0, five)).body.data.received, 5);
    assertError(await part(empty, id, 5, Buffer.from("1234567")), 422, "VALIDATION_ERROR");
    assertError(await empty.visitor.post(`${RESTORES}/${id}/start`, {}), 409, "INVALID_STATE");
    assertError(await begin(empty, 2 ** 50), 422, "VALIDATION_ERROR");
    const replies = await Promise.all([1, 2, 3].map(() => part(empty, id, 5, five)));
    assert.ok(replies.every(({ body }) => body.data.received === 10));
    const starts = await Promise.all([1, 2, 3].map(() => empty.visitor.post(`${RESTORES}/${id}/start`, {})));
    assert.ok(starts.every(({ status }) => status === 200 || status === 409));
  });

  test("parallel begins: one file, of the last; other uploads do not delete it", async (t) => {
    const empty = await openEmpty(t);
    const replies = await Promise.all([1, 2, 3, 4].map(() => begin(empty, 10)));
    const { dataDir } = empty.market.service.ctx.config;
    const names = await readdir(join(dataDir, "restore"));
    assert.equal(names.length, 1);
    assert.deepEqual(await readdir(await empty.market.service.ctx.integrations.storage.incoming()), []);
    const found = await Promise.all(
      replies.map(({ body }) => empty.visitor.get(`${RESTORES}/${body.data.id}`)),
    );
    assert.deepEqual(found.map(({ status }) => status).sort(), [200, 404, 404, 404]);
    await removeReceivedBackups(empty.market.service.ctx);
    await assert.rejects(readdir(join(dataDir, "restore")), /ENOENT/);
  });

  test("a service without accounts has rows only in tables that a restore replaces", async (t) => {
    const { market } = await openEmpty(t);
    for (const job of listScheduledJobs(market.service.ctx)) await job.run();
    await market.as(null).get("/v1/products?search=rain");
    await market.as(null).post("/api/auth/magic-link", { email: "ada@example.com" });
    const { rows } = await market.query(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
        where table_schema in ('public', 'fake_provider') and table_type = 'BASE TABLE'
          and table_name not like 'schema_%'`,
    );
    const missing: string[] = [];
    for (const { name } of rows) {
      const filled = (await market.query(`select from ${name} limit 1`)).rows.length > 0;
      if (filled && !TABLES_BEFORE_ACCOUNTS.includes(name)) missing.push(name);
    }
    assert.deepEqual(missing, []);
  });
});
