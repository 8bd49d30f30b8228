import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Transform, type Writable } from "node:stream";
import { after, before, suite, type TestContext, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type BackupOptions,
  backUpTo,
  createEmptyDatabase,
  createTempFolder,
  membersOf,
  PASSPHRASE,
  queryAt,
  shopOf,
} from "../../../test/backup-files.ts";
import { dumpDatabase } from "../../../test/dump.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { type Client, createDatabase, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt, runToCompletion } from "../../../test/runs.ts";
import { startS3Server } from "../../../test/s3-server.ts";
import { until } from "../../../test/until.ts";
import { picture, sendImage, uploadFile } from "../../../test/uploads.ts";
import { sweepBlobs } from "../../catalog/files/blob-sweep.ts";
import { rollUpSales } from "../../commerce/analytics/sales-sums.ts";
import { verifyLedger } from "../../commerce/ledger/verification.ts";
import { DAY_MS } from "../../core/dates.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import { restore } from "./restore.ts";

let provider: ProviderServer;
before(async () => {
  provider = await startProviderServer();
});
after(() => provider.close());

async function openShop(t: TestContext, options: Parameters<typeof openMarket>[0] = {}) {
  const market = await openMarket({ providers: providersAt(provider), ...options });
  t.after(() => market.close());
  return market;
}

interface Shop {
  market: Market;
  seller: Client;
  buyer: Client;
  productId: string;
  orderId: string;
  apiKeyId: string;
}

/** A shop with rows in every part of the service. */
async function hasShop(market: Market): Promise<Shop> {
  const [seller, buyer] = [
    await market.createUser({ name: "Seller" }),
    await market.createUser({ name: "Buyer" }),
  ];
  const productId = await createProduct(seller, {
    title: '"Quotes", \\N and ünïcödé 俳句',
    description: "Tabs\t, \\N, \\. and lines\n\\.\nas COPY escapes them.",
  });
  await uploadFile(seller, productId, { name: "guide.md", bytes: "# A guide\n" });
  assert.equal((await sendImage(seller, productId, { bytes: await picture() })).status, 201);
  const orderId = await buyProduct(buyer, productId);
  const review = await buyer.post(`/v1/products/${productId}/reviews`, { rating: 4, comment: "Good." });
  assert.equal(review.status, 201, review.text);
  const apiKeyId = await createProviderKey(buyer);
  await runToCompletion(buyer, { productId, apiKeyId });
  await hasClosedSeller(market, buyer);
  const { ctx } = market.service;
  const message = renderEmail({ subject: "News", paragraphs: ["Something changed."] });
  for (const name of ["ada", "grace"])
    await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, `${name}@example.com`, message));
  return { market, seller, buyer, productId, orderId, apiKeyId };
}

/** Today's triggers would refuse such rows. */
async function hasClosedSeller(market: Market, buyer: Client): Promise<void> {
  const seller = await market.createUser({ name: "Gone" });
  await buyProduct(buyer, await createProduct(seller, { title: "Left behind" }));
  await market.query("update users set closed_at = $1 where id = $2", [market.clock.now, seller.userId]);
}

/** Restores the archive into a new database and data folder, and starts a service there. */
async function openRestored(t: TestContext, market: Market, archive: string): Promise<Market> {
  const database = await createDatabase();
  const dataDir = await createTempFolder(t);
  const config = { ...market.service.ctx.config, dataDir, s3Url: null };
  await restore({ config, target: database.url }, archive, null);
  const restored = await openMarket({ providers: providersAt(provider), database, config });
  restored.clock.now = market.clock.now;
  t.after(() => restored.close());
  return restored;
}

async function createBackup(t: TestContext, market: Market, options: BackupOptions = {}) {
  const path = join(await createTempFolder(t), "shop.tar.gz");
  const result = await backUpTo(path, shopOf(market), options);
  return { path, result };
}

/** Removes origin, meta and views, which differ between two requests. */
const comparable = ({ origin }: Market, text: string) =>
  text
    .replaceAll(origin, "ORIGIN")
    .replace(/"meta":\{.*\}/, "")
    .replaceAll(/"views":\d+/g, "");

// Tables of the job queue without jobs, and those with the times of migrations.
const OTHERS = [
  "version",
  "queue",
  "schedule",
  "subscription",
  "bam",
  "warning",
  "queue_stats",
  "schema_migrations",
  "schema_functions",
  "request_logs",
];
const rowsOf = async (market: Market) => (await dumpDatabase(market, OTHERS)).split("\n").toSorted();

suite("a restored backup", { timeout: 120_000 }, () => {
  test("has every row, and the same constraints", async (t) => {
    const { market } = await hasShop(await openShop(t));
    // Without partitions: the job queue creates some each day, so that the restored database may have others.
    const rules = async ({ query }: Market) => {
      const { rows } = await query(`
        select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) as rule from pg_constraint
         where conrelid not in (select inhrelid from pg_inherits)
         union all
        select tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text from pg_trigger where not tgisinternal`);
      return rows.map(({ rule }) => rule).toSorted();
    };
    const [rows, before] = [await rowsOf(market), await rules(market)];
    const { path, result } = await createBackup(t, market);
    assert.deepEqual(result.problems, []);
    const restored = await openRestored(t, market, path);
    assert.deepEqual(await rowsOf(restored), rows);
    assert.deepEqual(await rules(restored), before);
    await assert.rejects(restored.query("update ledger_entries set amount_minor = 1"), /append-only/);
  });

  test("answers as before: keys, files, purchases and sealed secrets", async (t) => {
    const { market, seller, buyer, productId, orderId, apiKeyId } = await hasShop(await openShop(t));
    const restored = await openRestored(t, market, (await createBackup(t, market)).path);
    const paths = [
      "/v1/account",
      `/v1/products/${productId}`,
      "/v1/products?search=ünïcödé",
      "/v1/purchases",
    ];
    paths.push(`/v1/purchases/${orderId}`, `/v1/products/${productId}/reviews`, "/v1/ai/executions");
    for (const path of paths)
      for (const { key } of [seller, buyer]) {
        const [was, is] = [await market.as(key).get(path), await restored.as(key).get(path)];
        assert.equal(comparable(restored, is.text), comparable(market, was.text), path);
        if (key === buyer.key) assert.equal(is.status, 200, is.text);
      }
    const again = restored.as(buyer.key);
    const { files, gallery } = (await again.get(`/v1/products/${productId}`)).body.data;
    assert.equal((await restored.as(null).get(files[0].url)).text, "# A guide\n");
    assert.equal((await restored.as(null).get(gallery[0].sizes[0].url)).status, 200);
    assert.match((await runToCompletion(again, { productId })).output, /^\[sandbox\]/);
    assert.ok((await runToCompletion(again, { productId, apiKeyId })).output);
    await buyProduct(again, await createProduct(restored.as(seller.key), { title: "Another" }));
  });

  test("runs the queued jobs once", async (t) => {
    const { market } = await hasShop(await openShop(t));
    const jobs = async ({ query }: Market) =>
      (await query("select id, name, data, state from pgboss.job where name = 'send-mail' order by id")).rows;
    await market.query(
      "update pgboss.job set state = 'completed' where id = (select max(id::text) from pgboss.job)::uuid",
    );
    const { path } = await createBackup(t, market);
    const [open, kept] = [await jobs(market), await jobs(await openRestored(t, market, path))];
    assert.ok(open.length > 1);
    assert.deepEqual(
      kept,
      open.filter(({ state }) => state !== "completed"),
    );
  });

  test("is a consistent snapshot during purchases and deletions", inFullRun, async (t) => {
    const { market, productId, seller } = await hasShop(await openShop(t));
    // Enough data first that all other tables come after the gate below.
    await market.query(`
      insert into audit_log (id, action, details, created_at)
      select gen_random_uuid(), 'noise', to_jsonb(string_agg(md5(random()::text), '')), now()
        from generate_series(1, 60000)`);
    const buyers = await Promise.all(Array.from({ length: 3 }, () => market.createUser()));
    let [bought, isOver] = [0, false];
    const buy = async (buyer: Client) => {
      while (!isOver) {
        await buyProduct(buyer, await createProduct(seller, { title: "One more" }));
        bought++;
      }
    };
    const buying = Promise.all(buyers.map(buy));
    // During the backup, the shop continues until ten more purchases and a removed image.
    const meanwhile = async () => {
      const enough = bought + 10;
      await until("ten more were bought", () => bought >= enough);
      const { gallery: shown } = (await seller.get(`/v1/products/${productId}`)).body.data;
      assert.equal((await seller.delete(`/v1/products/${productId}/images/${shown[0].id}`)).status, 200);
      market.clock.forward(2 * DAY_MS);
      await sweepBlobs(market.service.ctx);
      market.clock.forward(-2 * DAY_MS);
    };
    const { path } = await createBackup(t, market, { sink: (file) => after16KiB(file, meanwhile) }).finally(
      () => {
        isOver = true;
      },
    );
    await buying;
    const restored = await openRestored(t, market, path);
    const { rows } = await restored.query(`
      select (select count(*) from orders where status = 'completed') as orders,
             (select count(*) from entitlements) as entitlements,
             (select sum(purchases) from product_stats)::int as purchases,
             (select count(*) from ledger_transactions where kind = 'sale') as sales,
             (select sum(amount_minor) from ledger_entries)::int as sum`);
    const [{ orders, ...counts }] = rows;
    assert.deepEqual(counts, { entitlements: orders, purchases: orders, sales: orders, sum: 0 });
    assert.ok(orders < bought + 2, "none of the later ones");
    const verdict = await verifyLedger(restored.service.ctx.db);
    assert.deepEqual(verdict.problems, []);
    const { gallery } = (await restored.as(seller.key).get(`/v1/products/${productId}`)).body.data;
    assert.equal(
      (await restored.as(null).get(gallery[0].sizes[0].url)).status,
      200,
      "the picture is restored",
    );
    market.clock.forward(2 * DAY_MS);
    await sweepBlobs(market.service.ctx);
    assert.equal((await market.query("select from blobs where key like 'images/%'")).rowCount, 0);
  });

  test("has the sales of before, also those not rolled up yet", inFullRun, async (t) => {
    const { market, seller, buyer } = await hasShop(await openShop(t));
    await rollUpSales(market.service.ctx);
    await buyProduct(buyer, await createProduct(seller));
    const answers = (of: Market) =>
      Promise.all(
        ["products", "revenue", "customers"].map(async (kind) => {
          const { status, text } = await of.as(seller.key).get(`/v1/analytics/${kind}`);
          assert.equal(status, 200, text);
          return comparable(of, text);
        }),
      );
    const waiting = async ({ query }: Market) => (await query("select from sales_movements")).rowCount;
    const answersBefore = await answers(market);
    assert.equal(await waiting(market), 1);
    const restored = await openRestored(t, market, (await createBackup(t, market)).path);
    assert.deepEqual([await answers(restored), await waiting(restored)], [answersBefore, 1]);
    await rollUpSales(restored.service.ctx);
    assert.deepEqual([await answers(restored), await waiting(restored)], [answersBefore, 0]);
    assert.deepEqual((await verifyLedger(restored.service.ctx.db)).problems, []);
  });

  test("moves files from a bucket to a folder", inFullRun, async (t) => {
    const s3 = await startS3Server();
    t.after(() => s3.close());
    const { market, buyer, productId } = await hasShop(await openShop(t, { config: { s3Url: s3.url } }));
    const restored = await openRestored(t, market, (await createBackup(t, market)).path);
    const { files } = (await restored.as(buyer.key).get(`/v1/products/${productId}`)).body.data;
    assert.equal((await restored.as(null).get(files[0].url)).text, "# A guide\n");
  });

  test("lists files that were missing or damaged", inFullRun, async (t) => {
    const { market, seller } = await hasShop(await openShop(t));
    const folder = join(market.service.ctx.config.dataDir, "files");
    const damaged = await createProduct(seller, { title: "Damaged" });
    await uploadFile(seller, damaged, { bytes: "damaged soon" });
    const { rows } = await market.query(
      "select name, size from blobs where key like 'files/%' order by size",
    );
    const [emptied, altered] = rows.map(({ name }) => name);
    const shop = shopOf(market);
    await writeFile(join(folder, altered.slice(0, 2), altered), "DAMAGED SOON");
    await writeFile(join(folder, emptied.slice(0, 2), emptied), "");
    const path = join(await createTempFolder(t), "shop.tar.gz");
    const result = await backUpTo(path, shop);
    assert.deepEqual(
      result.problems,
      [emptied, altered].toSorted().map((name) => `the file ${name} is missing or damaged in the storage`),
    );
    await openRestored(t, market, path);
  });

  test("continues sequences and generated columns", async (t) => {
    const table = `create table extra (id bigint generated always as identity, word text,
      twice text generated always as (word || word) stored)`;
    const market = await openShop(t);
    await market.createUser();
    await market.query(table);
    await market.query("insert into extra (word) values ('a'), ('b'), ('c')");
    await market.query("delete from extra where word = 'c'");
    const { path } = await createBackup(t, market);
    const database = await createEmptyDatabase(t);
    await queryAt(database, table);
    const config = { ...market.service.ctx.config, dataDir: await createTempFolder(t) };
    await restore({ config, target: database.url }, path, null);
    await queryAt(database, "insert into extra (word) values ('d')");
    const rows = await queryAt(database, "select id::int, twice from extra order by id");
    assert.deepEqual(rows, [
      { id: 1, twice: "aa" },
      { id: 2, twice: "bb" },
      { id: 4, twice: "dd" },
    ]);
  });
});

suite("a backup archive", { timeout: 120_000 }, () => {
  test("contains no unencrypted key, and none without a passphrase", async (t) => {
    const market = await openShop(t);
    const [{ path, result }, wrapped] = [
      await createBackup(t, market),
      await createBackup(t, market, { passphrase: PASSPHRASE }),
    ];
    assert.deepEqual([result.keys, wrapped.result.keys], ["none", "wrapped"]);
    const { masterKeys, sessionKeys } = market.service.ctx.config;
    const secrets = [...masterKeys.map(({ bytes }) => bytes), ...sessionKeys];
    for (const [name, bytes] of [...(await membersOf(path)), ...(await membersOf(wrapped.path))])
      for (const secret of secrets) {
        assert.equal(bytes.indexOf(secret), -1, name);
        for (const form of ["base64", "base64url", "hex"] as const)
          assert.equal(bytes.indexOf(secret.toString(form)), -1, name);
      }
    const names = (await membersOf(path)).map(([name]) => name);
    assert.ok(!names.includes("keys.json"));
    assert.deepEqual([names[0], names.at(-1)], ["format", "manifest.hmac"]);
  });

  test("of a large table: written and read a few megabytes at a time", inFullRun, async (t) => {
    const [TABLE_MIB, MAX_MIB] = [24, 12];
    const market = await openShop(t);
    await market.createUser();
    await market.query("create table extra (line text)");
    await market.query(
      "insert into extra select repeat(md5(i::text), 32768 / 4) from generate_series(1, $1 * 4) i",
      [TABLE_MIB],
    );
    const memory = watchMemory();
    const { path } = await createBackup(t, market);
    const database = await createEmptyDatabase(t);
    await queryAt(database, "create table extra (line text)");
    const config = { ...market.service.ctx.config, dataDir: await createTempFolder(t) };
    await restore({ config, target: database.url }, path, null);
    const peak = memory.stop();
    assert.ok(peak < MAX_MIB, `${peak} MiB`);
    const [{ size }] = await queryAt(database, "select sum(length(line))::int / 1048576 as size from extra");
    assert.equal(size, TABLE_MIB);
  });

  test("a reader that disconnects: ends, and releases its locks", async (t) => {
    const market = await openShop(t);
    await market.createUser();
    const path = join(await createTempFolder(t), "shop.tar.gz");
    const broken = (file: Writable) =>
      after16KiB(file, () => Promise.reject(new Error("the reader is gone")));
    await assert.rejects(backUpTo(path, shopOf(market), { sink: broken }), /the reader is gone/);
    // PostgreSQL removes a closed session from its list a moment later.
    await until("no session of the backup is left", async () => {
      const { rows } = await market.query(
        "select from pg_stat_activity where datname = current_database() and application_name = 'stoa backup'",
      );
      return rows.length === 0;
    });
  });

  test("keys or environment of another shop: refused", async (t) => {
    const market = await openShop(t);
    const path = join(await createTempFolder(t), "shop.tar.gz");
    const { config, target } = shopOf(market);
    const other = { ...config, masterKeys: [{ id: "1", bytes: Buffer.alloc(32, 7) }] };
    await assert.rejects(backUpTo(path, { config: other, target }), /STOA_MASTER_KEYS lacks the key/);
    const production = { ...config, environment: "production" as const };
    await assert.rejects(backUpTo(path, { config: production, target }), /is a test database/);
  });

  test("contains the shop's tables only", async (t) => {
    const database = await createEmptyDatabase(t);
    const market = await openShop(t);
    const path = join(await createTempFolder(t), "shop.tar.gz");
    const shop = { config: market.service.ctx.config, target: database.url };
    await assert.rejects(backUpTo(path, shop), /has 0 of \d+ migrations/);
  });
});

/** Passes 16 KiB on, waits for `work`, then passes the rest. */
function after16KiB(sink: Writable, work: () => Promise<void>): Writable {
  let done = false;
  const gate = new Transform({
    transform(chunk, _, callback) {
      const passed = () => callback(null, chunk);
      if (done) return passed();
      done = true;
      work().then(passed, callback);
    },
  });
  gate.on("error", () => sink.destroy());
  gate.pipe(sink);
  return gate;
}

/** Memory of buffers after a garbage collection, in MiB. */
function watchMemory() {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const bufferedMiB = () => {
    collect();
    // Another thread frees the memory of the first collection; the second one waits for it.
    collect();
    return process.memoryUsage().arrayBuffers / 1_048_576;
  };
  const samples: number[] = [];
  let timer: NodeJS.Timeout;
  // At most a sixth of the time is for measuring, and at least five measurements a second.
  const sample = () => {
    const startedAt = performance.now();
    samples.push(bufferedMiB());
    timer = setTimeout(sample, Math.min(5 * (performance.now() - startedAt), 200));
  };
  sample();
  return {
    stop() {
      clearTimeout(timer);
      assert.ok(samples.length > 3, "several samples");
      return Math.max(...samples) - Math.min(...samples);
    },
  };
}
