import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { after, before, suite, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { uploadFile } from "../../../test/uploads.ts";
import { startService } from "../../app.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { transactionTimeouts } from "../../platform/db/client.ts";

const MINUTE_MS = 60_000;

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
  const seller = await market.createUser();
  const productId = await createProduct(seller);
  await uploadFile(seller, productId);
  await buyProduct(await market.createUser(), productId);
  const { userId } = await market.createUser({ name: "Admin", role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

const ended = (path: string) =>
  becomes(
    async () => (await admin.get(`/v1/admin/${path}`)).body.data,
    ({ status }) => status !== "running",
  );
const auditOf = async (action: string) =>
  (await market.query("select actor_id, target_id from audit_log where action = $1", [action])).rows;
const folder = () => join(market.service.ctx.config.dataDir, "backups");

async function hasBackup() {
  const reply = await admin.post("/v1/admin/backups");
  assert.equal(reply.status, 201, reply.text);
  return ended(`backups/${reply.body.data.id}`);
}

suite("backups", { timeout: 60_000 }, () => {
  test("parallel clicks: one backup, with its progress and result, one audit entry", async () => {
    const replies = await Promise.all(Array.from({ length: 5 }, () => admin.post("/v1/admin/backups")));
    const ids = new Set(replies.map(({ body }) => body.data.id));
    assert.equal(ids.size, 1, replies[0]?.text);
    const [id] = ids;
    assert.equal(replies[0]?.body.data.status, "running");
    const backup = await ended(`backups/${id}`);
    assert.equal(backup.status, "succeeded", backup.error);
    assert.deepEqual(await readdir(folder()), [backup.fileName]);
    assert.ok(backup.size > 1_000 && backup.isAvailable);
    assert.deepEqual(backup.progress.done, backup.progress.total);
    const { rows, tables, ...result } = backup.result;
    assert.ok(rows > 10 && tables > 50);
    assert.deepEqual(result, { files: 1, keys: "none", problems: [] });
    assert.equal((await auditOf("backup.started")).length, 1);
    assert.equal((await admin.get("/v1/admin/backups")).body.data[0].id, id);
  });

  test("download: needs a fresh sign-in for the link, and a session of an administrator for the file", async () => {
    const { id, size, fileName } = await hasBackup();
    const { userId } = await market.createUser({ role: "admin" });
    const stale = await market.createSession(userId, { secondFactor: true });
    const { body } = await admin.post(`/v1/admin/backups/${id}/download-link`);
    const path = body.data.url.slice(market.origin.length);
    const reply = await fetch(market.origin + path, { headers: { authorization: `Bearer ${admin.key}` } });
    assert.equal(reply.status, 200);
    assert.match(reply.headers.get("content-disposition") ?? "", new RegExp(fileName));
    const bytes = Buffer.from(await reply.arrayBuffer());
    assert.equal(bytes.length, size);
    assert.ok(gunzipSync(bytes).includes("stoa backup 1"));
    assert.deepEqual(await auditOf("backup.downloaded"), [{ actor_id: admin.userId, target_id: id }]);
    assertError(await market.as(null).get(path), 401, "INVALID_API_KEY");
    const user = await market.createSession((await market.createUser()).userId);
    assertError(await user.get(path), 403, "UNAUTHORIZED");
    assertError(await admin.get(path.split("?")[0]), 401, "INVALID_TOKEN");
    market.clock.forward(16 * MINUTE_MS);
    assertError(await admin.get(path), 401, "INVALID_TOKEN");
    assertError(await stale.post(`/v1/admin/backups/${id}/download-link`), 403, "UNAUTHORIZED");
    market.clock.forward(-16 * MINUTE_MS);
  });

  test("a file that is gone, and a deleted backup", async () => {
    const { id, fileName } = await hasBackup();
    await rm(join(folder(), fileName));
    assert.equal((await ended(`backups/${id}`)).isAvailable, false);
    assertError(await admin.post(`/v1/admin/backups/${id}/download-link`), 409, "INVALID_STATE");
    const other = await hasBackup();
    assert.equal((await admin.delete(`/v1/admin/backups/${other.id}`)).status, 200);
    assert.ok(!(await readdir(folder())).includes(other.fileName));
    for (const unknown of [other.id, "x"]) {
      assertError(await admin.get(`/v1/admin/backups/${unknown}`), 404, "BACKUP_NOT_FOUND");
      assertError(await admin.delete(`/v1/admin/backups/${unknown}`), 404, "BACKUP_NOT_FOUND");
    }
  });

  test("of a process that died: failed, and the next one runs", async () => {
    const { rows } = await market.query(
      `insert into operator_tasks (id, kind, step, started_at, renewed_at)
         values (gen_random_uuid(), 'backup', 'Writing tables', $1, $1) returning id`,
      [market.clock.now],
    );
    const running = await admin.post("/v1/admin/backups");
    assert.equal(running.body.data.status, "running", "it may live elsewhere");
    assertError(await admin.delete(`/v1/admin/backups/${running.body.data.id}`), 409, "INVALID_STATE");
    market.clock.forward(2 * MINUTE_MS);
    const dead = (await admin.get(`/v1/admin/backups/${running.body.data.id}`)).body.data;
    assert.equal(dead.status, "failed");
    assert.match(dead.error, /has ended/);
    const part = join(folder(), `${dead.fileName}.part`);
    await writeFile(part, "half");
    assert.equal((await hasBackup()).status, "succeeded");
    assert.ok(!(await readdir(folder())).includes(basename(part)));
    await market.query("delete from operator_tasks where id = $1", [rows[0].id]);
  });

  test("of a process that died: deleted with its unfinished file", async () => {
    const { rows } = await market.query(
      `insert into operator_tasks (id, kind, step, started_at, renewed_at)
         values (gen_random_uuid(), 'backup', 'Writing tables', $1, $1) returning id`,
      [market.clock.now],
    );
    const id = toId("bkp", rows[0].id);
    const { fileName } = (await admin.get(`/v1/admin/backups/${id}`)).body.data;
    await writeFile(join(folder(), `${fileName}.part`), "half");
    assertError(await admin.delete(`/v1/admin/backups/${id}`), 409, "INVALID_STATE");
    market.clock.forward(2 * MINUTE_MS);
    const reply = await admin.delete(`/v1/admin/backups/${id}`);
    assert.equal(reply.status, 200, reply.text);
    assertError(await admin.get(`/v1/admin/backups/${id}`), 404, "BACKUP_NOT_FOUND");
    assert.ok(!(await readdir(folder())).includes(`${fileName}.part`));
  });

  test("no room for another one of the last size: fails at once, and says how much is missing", async () => {
    const { id } = await hasBackup();
    await market.query(
      `update operator_tasks set result = jsonb_set(result, '{size}', '1125899906842624') where id = $1`,
      [toUuid("bkp", id)],
    );
    const { status, error } = await hasBackup();
    assert.equal(status, "failed");
    assert.match(error, /GB free, and a backup needs 1048576\.3 GB/);
    assert.equal((await admin.delete(`/v1/admin/backups/${id}`)).status, 200);
    assert.equal((await hasBackup()).status, "succeeded");
  });

  test("the disk fails: the backup reports it, and leaves no file", async () => {
    const { ctx } = market.service;
    const { dataDir } = ctx.config;
    ctx.config.dataDir = "/dev/null/nowhere";
    const { status, error, result } = await hasBackup();
    ctx.config.dataDir = dataDir;
    assert.deepEqual([status, result], ["failed", null]);
    assert.match(error, /ENOTDIR/);
  });
});

suite("ledger verification", () => {
  test("parallel clicks: one verification with its report", async () => {
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => admin.post("/v1/admin/ledger-verifications")),
    );
    assert.equal(new Set(replies.map(({ body }) => body.data.id)).size, 1, replies[0]?.text);
    const { result, progress, status } = await ended(`ledger-verifications/${replies[0]?.body.data.id}`);
    assert.equal(status, "succeeded");
    assert.ok(progress.total > 10 && progress.done === progress.total);
    assert.deepEqual([result.ok, result.problemCount, result.problems], [true, 0, []]);
    assert.ok(result.transactions > 0 && result.entries > result.transactions);
    assert.equal((await auditOf("ledger_verification.started")).length, 1);
    const health = (await admin.get("/v1/admin/health")).body.data;
    const books = health.checks.find(({ check }: { check: string }) => check === "books");
    assert.match(books.note, /all was well/);
    assertError(await admin.get("/v1/admin/ledger-verifications/x"), 404, "LEDGER_VERIFICATION_NOT_FOUND");
  });

  test("its process ends during a long check: the check is canceled at once, and can be started again", async () => {
    const { config, log } = market.service.ctx;
    const now = () => market.clock.now;
    const node = await startService(config, { target: market.target, maxConnections: 4 }, { now, log });
    // The check waits for this table as it would work on a large one.
    const table = await market.service.ctx.pool.connect();
    await table.query("begin");
    await table.query("lock table ledger_entries in access exclusive mode");
    const { body } = await clientOf(node.origin, admin.key).post("/v1/admin/ledger-verifications");
    const { id } = body.data;
    const checking = async () =>
      (
        await market.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%ledger_entries%'",
        )
      ).rows.length;
    await becomes(checking, (count) => count > 0);
    await node.close();
    // The timeout of the lock would end it, too.
    await becomes(
      checking,
      (count) => count === 0,
      "no check in the database",
      transactionTimeouts.lockMs / 2,
    );
    const { status, error, result } = (await admin.get(`/v1/admin/ledger-verifications/${id}`)).body.data;
    assert.deepEqual([status, result], ["failed", null]);
    assert.match(error, /has ended\. Start it again/);
    await table.query("rollback");
    table.release();
    // A verification belongs to its time.
    market.clock.forward(1_000);
    const again = (await admin.post("/v1/admin/ledger-verifications")).body.data;
    assert.notEqual(again.id, id);
    assert.equal((await ended(`ledger-verifications/${again.id}`)).status, "succeeded");
  });
});
