import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, type TestContext, test } from "node:test";
import { gunzipSync } from "node:zlib";
import pg from "pg";
import {
  backUpTo,
  createEmptyDatabase,
  createTempFolder,
  type Members,
  membersOf,
  PASSPHRASE,
  queryAt,
  shopOf,
  writeMembers,
} from "../../../test/backup-files.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { uploadFile } from "../../../test/uploads.ts";
import type { Config } from "../../core/config/config.ts";
import { replaceSecrets } from "../../core/config/secrets.ts";
import { installationOf, mustBelongTo } from "../../platform/db/installation.ts";
import { readArchiveKeys } from "./inspect.ts";
import { hmacOf } from "./manifest.ts";
import { restore, TABLES_FILLED_BY_MIGRATIONS } from "./restore.ts";

let market: Market;
let members: Members;
/** Of a small shop, with keys. */
let archive: Buffer;
before(async () => {
  market = await openMarket();
  const seller = await market.createUser();
  const productId = await createProduct(seller);
  await uploadFile(seller, productId);
  await buyProduct(await market.createUser(), productId);
  const path = join(market.service.ctx.config.dataDir, "shop.tar.gz");
  await backUpTo(path, shopOf(market), { passphrase: PASSPHRASE });
  archive = await readFile(path);
  members = await membersOf(path);
});
after(() => market.close());

/** An archive, an empty database, and an installation with the shop's settings. */
async function hasAll(t: TestContext, settings: Partial<Config> = {}) {
  const [database, dataDir] = [await createEmptyDatabase(t), await createTempFolder(t)];
  const path = join(await createTempFolder(t), "shop.tar.gz");
  await writeFile(path, archive);
  const config: Config = { ...market.service.ctx.config, dataDir, ...settings };
  const run = (passphrase: string | null = null) =>
    restore({ config, target: database.url }, path, passphrase);
  return { database, config, path, run };
}
type All = Awaited<ReturnType<typeof hasAll>>;

/** Asserts that the database has no table and the storage no file. */
async function mustBeUntouched({ database, config }: All): Promise<void> {
  assert.deepEqual(await queryAt(database, "select * from pg_tables where schemaname = 'public'"), []);
  assert.deepEqual(await readdir(config.dataDir), []);
}

async function mustRefuse(all: All, why: RegExp, passphrase: string | null = null): Promise<void> {
  await assert.rejects(all.run(passphrase), (error: Error) => {
    assert.equal(error.name, "Error", String(error.stack));
    assert.match(error.message, why);
    return true;
  });
  await mustBeUntouched(all);
}

const replaced = (name: string, change: (text: string) => string): Members =>
  members.map((member) => (member[0] === name ? [name, Buffer.from(change(member[1].toString()))] : member));

/** Signs the manifest with the master key. */
const sealed = (those: Members, manifest: string): Members =>
  those.map(([name, bytes]) => {
    if (name === "manifest.json") return [name, Buffer.from(manifest)];
    const { masterKeys } = market.service.ctx.config;
    return [name, name === "manifest.hmac" ? Buffer.from(hmacOf(manifest, masterKeys[0]!)) : bytes];
  });

/** Asserts that the tables are empty, apart from those that migrations fill. */
async function mustHaveNoRow({ database }: All): Promise<void> {
  const tables = await queryAt(database, "select tablename from pg_tables where schemaname = 'public'");
  assert.ok(tables.length > 10);
  const isFilled = (name: string) =>
    name.startsWith("schema_") || TABLES_FILLED_BY_MIGRATIONS.includes(`public.${name}`);
  for (const { tablename } of tables.filter((table) => !isFilled(table.tablename)))
    assert.deepEqual(await queryAt(database, `select from public.${tablename} limit 1`), [], tablename);
}

const USERS = "tables/public.users/1";
const sha256 = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");

function unpacksTo(packed: Buffer, expected: Buffer): boolean {
  try {
    return gunzipSync(packed).equals(expected);
  } catch {
    return false;
  }
}

suite("restore refuses an archive and changes nothing", { timeout: 120_000 }, () => {
  test("cut at any place", async (t) => {
    const all = await hasAll(t);
    for (const part of [0, 0.001, 0.3, 0.6, 0.99]) {
      await writeFile(all.path, archive);
      await truncate(all.path, Math.floor(archive.length * part));
      await mustRefuse(
        all,
        /shop\.tar\.gz cannot be restored: (it was cut or altered|its end is missing|it is no backup)/,
      );
    }
    await writeFile(all.path, archive.subarray(0, -1));
    await mustRefuse(all, /cut or altered/);
  });

  test("with any byte altered", async (t) => {
    const all = await hasAll(t);
    const HEADER_BYTES = 10;
    for (let step = 0; step < 40; step++) {
      const at = HEADER_BYTES + Math.floor(((archive.length - HEADER_BYTES - 1) * step) / 39);
      const altered = Buffer.from(archive);
      altered[at]! ^= 0x10;
      // A changed distance within a run of equal bytes unpacks to the same archive.
      if (unpacksTo(altered, gunzipSync(archive))) continue;
      await writeFile(all.path, altered);
      await mustRefuse(all, /cannot be restored/);
    }
  });

  test("put together without the keys", async (t) => {
    const all = await hasAll(t);
    const promoted = (text: string) => text.replace("\tuser\t", "\tadmin\t");
    await writeMembers(all.path, replaced(USERS, promoted));
    await mustRefuse(all, /the rows of public\.users are not those that were written/);
    const rows = members.find(([name]) => name === USERS)![1].toString();
    assert.notEqual(promoted(rows), rows);
    const fitting = replaced(USERS, promoted).map(([name, bytes]): Members[number] =>
      name === "manifest.json"
        ? [name, Buffer.from(bytes.toString().replace(sha256(rows), sha256(promoted(rows))))]
        : [name, bytes],
    );
    await writeMembers(all.path, fitting);
    await mustRefuse(all, /its manifest is not what the master key sealed/);
  });

  test("with a part missing, added or moved", async (t) => {
    const all = await hasAll(t);
    const without = (like: RegExp) => members.filter(([name]) => !like.test(name));
    const cases: [Members, RegExp][] = [
      [without(/users/), /the rows of public\.users/],
      [without(/^files\//), /files are missing or too many/],
      [without(/^keys/), /its keys are not those/],
      [without(/^manifest\.json/), /its end is missing/],
      [without(/^manifest\.hmac/), /its end is missing/],
      [without(/^format/), /it is no backup of Stoa/],
      [[...members, ["more", Buffer.from("more")]], /it contains more in the wrong place/],
      [
        members.toSpliced(2, 0, ["more", Buffer.from("more")]),
        /it contains more, which is not part of a backup/,
      ],
      [members.toSpliced(2, 0, members[2]!), /the rows of/],
      [
        members.map(([name, bytes]) => (/^files\//.test(name) ? [name, Buffer.from("x")] : [name, bytes])),
        /its file \S+ was altered/,
      ],
    ];
    for (const [put, why] of cases) {
      await writeMembers(all.path, put);
      await mustRefuse(all, why);
    }
  });

  test("of another format, another migration, or no archive", async (t) => {
    const all = await hasAll(t);
    await writeMembers(
      all.path,
      replaced("format", () => "stoa backup 2\n"),
    );
    await mustRefuse(all, /its format is "stoa backup 2", and this version knows "stoa backup 1"/);
    const newer = (text: string) => text.replace("0001_people.sql", "0000_others.sql");
    await writeMembers(all.path, replaced("manifest.json", newer));
    await mustRefuse(
      all,
      /another version of Stoa: it has 0000_others\.sql \(\w{8}\), and this version has 0001_people\.sql \(\w{8}\)/,
    );
    await writeFile(all.path, "no archive");
    await mustRefuse(all, /it was cut or altered/);
  });

  test("of another environment", async (t) => {
    const all = await hasAll(t, { environment: "production" });
    await mustRefuse(all, /of a test shop; STOA_ENVIRONMENT says production\. Set it to test/);
  });

  test("for a database with rows, which stay", async (t) => {
    const all = await hasAll(t);
    await all.run();
    const count = () => queryAt(all.database, "select count(*)::int from users");
    const before = await count();
    await queryAt(all.database, "delete from listings");
    await assert.rejects(
      all.run(),
      /This database is not empty: there are rows in .*, public\.api_keys, .* and \d+ more\. Restore into a new one; `stoa-server reset`/,
    );
    assert.deepEqual(await count(), before);
    assert.deepEqual(await queryAt(all.database, "select from listings"), []);
  });
});

suite("the keys of an archive", { timeout: 120_000 }, () => {
  const others = () => [{ id: "1", bytes: Buffer.alloc(32, 9) }];

  test("with the passphrase: replace those of the data folder, which are renamed", async (t) => {
    const all = await hasAll(t, { masterKeys: others() });
    const { config } = all;
    config.secretsDir = config.dataDir;
    const own = JSON.stringify({ masterKeys: [{ id: "1", key: "own" }], sessionKeys: [] });
    await writeFile(join(config.dataDir, "secrets.json"), own);
    const result = await all.run(PASSPHRASE);
    assert.equal(result.keys, "put into the data folder");
    const stored = JSON.parse(await readFile(join(config.dataDir, "secrets.json"), "utf8"));
    const { masterKeys, sessionKeys } = market.service.ctx.config;
    assert.deepEqual(
      [...stored.masterKeys, ...stored.sessionKeys].map(({ key }) => key),
      [...masterKeys.map(({ bytes }) => bytes), ...sessionKeys].map((bytes) => bytes.toString("base64")),
    );
    const names = (await readdir(config.dataDir)).filter((name) => /^secrets\.\w{16}\.json$/.test(name));
    assert.equal(await readFile(join(config.dataDir, names[0]!), "utf8"), own);
  });

  const keysIn = async ({ config }: All) =>
    JSON.parse(await readFile(join(config.dataDir, "secrets.json"), "utf8")).masterKeys;

  /** The connection breaks at the commit, before or after the server carries it out. */
  async function losesCommit(t: TestContext, { isCarriedOut }: { isCarriedOut: boolean }) {
    const all = await hasAll(t, { masterKeys: others() });
    const { dataDir } = all.config;
    all.config.secretsDir = dataDir;
    const own = others().map(({ id, bytes }) => ({ id, key: bytes.toString("base64") }));
    await writeFile(join(dataDir, "secrets.json"), JSON.stringify({ masterKeys: own, sessionKeys: [] }));
    const { query } = pg.Client.prototype;
    const lose = async (client: pg.Client) => {
      if (isCarriedOut) await Reflect.apply(query, client, ["commit"]);
      throw new Error("connection lost");
    };
    let isReached = false;
    t.mock.method(pg.Client.prototype, "query", function (this: pg.Client, ...args: unknown[]) {
      isReached ||= JSON.stringify(args[0] ?? "").includes("pg_current_xact_id");
      const isCommit = isReached && JSON.stringify(args[0] ?? "").includes('"commit"');
      return isCommit ? lose(this) : Reflect.apply(query, this, args);
    });
    return { all, own };
  }

  test("a commit that fails: the keys of before come back", async (t) => {
    const { all, own } = await losesCommit(t, { isCarriedOut: false });
    await assert.rejects(all.run(PASSPHRASE), /connection lost/);
    t.mock.restoreAll();
    assert.deepEqual(await keysIn(all), own);
    await mustHaveNoRow(all);
  });

  test("a commit whose answer is lost: succeeds, with the new keys", inFullRun, async (t) => {
    const { all, own } = await losesCommit(t, { isCarriedOut: true });
    assert.equal((await all.run(PASSPHRASE)).keys, "put into the data folder");
    t.mock.restoreAll();
    assert.notDeepEqual(await keysIn(all), own);
  });

  test("killed before the commit: the next start names the file with the keys of the database", async (t) => {
    const dataDir = await createTempFolder(t);
    const { ctx } = market.service;
    const secretsOf = (keys: { id: string; bytes: Buffer }[]) => ({
      masterKeys: keys.map(({ id, bytes }) => ({ id, key: bytes.toString("base64") })),
      sessionKeys: [],
    });
    await writeFile(join(dataDir, "secrets.json"), JSON.stringify(secretsOf(ctx.config.masterKeys)));
    replaceSecrets(dataDir, secretsOf(others()));
    const after = { ...ctx.config, masterKeys: others(), secretsDir: dataDir };
    await assert.rejects(
      mustBelongTo(ctx.db, installationOf(after)),
      /restore was killed .* cp ".*\/secrets\.\w{16}\.json" ".*\/secrets\.json"/,
    );
  });

  test("another passphrase: refused", async (t) => {
    const all = await hasAll(t, { masterKeys: others() });
    all.config.secretsDir = all.config.dataDir;
    await mustRefuse(all, /STOA_BACKUP_PASSPHRASE does not open the keys/, "another passphrase");
    await mustRefuse(all, /Set STOA_BACKUP_PASSPHRASE to what it was/);
  });

  test("keys in the settings: never replaced; the message says how to set them", async (t) => {
    const all = await hasAll(t, { masterKeys: others(), secretsDir: null });
    await mustRefuse(
      all,
      /Set STOA_MASTER_KEYS and STOA_SESSION_KEYS to what `stoa-server restore --keys`/,
      PASSPHRASE,
    );
    const keys = await readArchiveKeys(all.path, PASSPHRASE);
    const bytes = market.service.ctx.config.masterKeys[0]!.bytes.toString("base64");
    assert.equal(keys.masterKeys[0]!.key, bytes);
  });

  test("no keys in the archive: the message names the needed ones", async (t) => {
    const all = await hasAll(t, { masterKeys: others() });
    await backUpTo(all.path, shopOf(market));
    await mustRefuse(
      all,
      /sealed by the master keys [0-9a-f]{16}, which this installation lacks, and it contains no keys/,
    );
    await assert.rejects(readArchiveKeys(all.path, PASSPHRASE), /contains no keys/);
  });
});

suite("a restore", { timeout: 120_000 }, () => {
  test("needs the rights of the database's owner only", inFullRun, async (t) => {
    const { database, config, path } = await hasAll(t);
    const owned = new URL(database.url);
    owned.username = `owner_of_${owned.pathname.slice(1)}`;
    await queryAt(database, `create role ${owned.username} login`);
    await queryAt(database, `alter database ${owned.pathname.slice(1)} owner to ${owned.username}`);
    const { rows } = await restore({ config, target: owned.href }, path, null);
    assert.ok(rows > 10);
    const [{ is_superuser }] = await queryAt({ url: owned.href }, "show is_superuser");
    assert.equal(is_superuser, "off");
  });

  test("parallel restores: one succeeds, the others find its rows", async (t) => {
    const all = await hasAll(t);
    const ends = await Promise.allSettled(Array.from({ length: 5 }, () => all.run()));
    const refused = ends.filter((end) => end.status === "rejected");
    assert.equal(refused.length, 4);
    for (const { reason } of refused) assert.match(reason.message, /This database is not empty/);
    const [{ count }] = await queryAt(all.database, "select count(*)::int from orders");
    assert.equal(count, 1);
  });

  test("content that differs from the manifest: no row", inFullRun, async (t) => {
    const all = await hasAll(t);
    const manifest = members.find(([name]) => name === "manifest.json")![1].toString();
    const users = members.find(([name]) => name === USERS)![1].toString();
    const fewer = users.slice(users.indexOf("\n") + 1);
    const { tables, ledger } = JSON.parse(manifest);
    const { rows } = tables.find(({ name }: { name: string }) => name === "public.users");
    const withoutOne = manifest
      .replace(sha256(users), sha256(fewer))
      .replace(/("public\.users",[^}]*"rows": )\d+/, `$1${rows - 1}`);
    const cases: [Members, RegExp][] = [
      [
        sealed(members, manifest.replace(/("public\.users",[^}]*"rows": )\d+/, "$19")),
        /public\.users has 2 rows, and the archive says 9/,
      ],
      [
        sealed(
          replaced(USERS, () => fewer),
          withoutOne,
        ),
        /violates foreign key constraint/,
      ],
      [
        sealed(members, manifest.replace(`"entries": ${ledger.entries}`, '"entries": 99')),
        /The ledger is not what it was/,
      ],
    ];
    for (const [put, why] of cases) {
      await writeMembers(all.path, put);
      await assert.rejects(all.run(), why);
      await mustHaveNoRow(all);
    }
    await writeFile(all.path, archive);
    await all.run();
  });

  test("killed in the middle: no row; a second restore has all", async (t) => {
    const bucket = await startSilentBucket(t);
    const all = await hasAll(t);
    const child = startRestore(all, bucket.url);
    // Files are written after the rows: at the bucket's first request, all rows are copied and none is committed.
    const stderr = text(child.stderr!);
    const ended = once(child, "exit").then(() => stderr);
    await Promise.race([bucket.asked, ended.then((why) => assert.fail(`the restore ended: ${why}`))]);
    child.kill("SIGKILL");
    await ended;
    await mustHaveNoRow(all);
    const { rows } = await all.run();
    assert.ok(rows > 10);
    const [{ count }] = await queryAt(
      all.database,
      "select count(*)::int from orders where status = 'completed'",
    );
    assert.equal(count, 1);
  });
});

/** A bucket that never answers; `asked` resolves at the first request. */
async function startSilentBucket(t: TestContext) {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `s3://key:secret@127.0.0.1:${port}/bucket`, asked: asked.promise };
}

function startRestore({ database, config, path }: All, s3Url: string): ChildProcess {
  const key = (bytes: Buffer) => `1:${bytes.toString("base64")}`;
  return spawn(
    process.execPath,
    [join(import.meta.dirname, "../../../bin/stoa-server.mjs"), "restore", path],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: {
        PATH: process.env["PATH"],
        DATABASE_URL: database.url,
        S3_URL: s3Url,
        STOA_DATA_DIR: config.dataDir,
        STOA_MASTER_KEYS: key(config.masterKeys[0]!.bytes),
        STOA_SESSION_KEYS: key(config.sessionKeys[0]!),
      },
    },
  );
}
