import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  copyDemoData,
  npmStart,
  STOA,
  type Started,
  shell,
  stop,
  temporaryFolder,
} from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
before(async () => {
  folder = await temporaryFolder();
  await copyDemoData(at("data"));
  service = await npmStart(at("data"));
});
after(async () => {
  await stop(service);
  await folder.remove();
});

const at = (path: string) => join(folder.path, path);
const stoa = (line: string, settings: Record<string, string> = {}) =>
  shell(`${STOA} ${line}`, { STOA_DATA_DIR: at("data"), ...settings });

test("backup to stdout while the service runs: the archive restores", async () => {
  const { code, stderr } = await stoa(`backup - > ${at("piped.tar.gz")}`);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /"file":"-".*"keys":"none"/);
  assert.match(stderr, /The archive holds no keys: keep STOA_MASTER_KEYS/);
  const settings = { STOA_DATA_DIR: at("new") };
  const refused = await stoa(`restore ${at("piped.tar.gz")}`, settings);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /put that installation's secrets\.json into the data folder/);
  await shell(`cp ${at("data/secrets.json")} ${at("new/secrets.json")}`, {});
  const restored = await stoa(`restore ${at("piped.tar.gz")} --json`, settings);
  assert.equal(restored.code, 0, restored.stderr);
  const { keys, rows } = JSON.parse(restored.stdout);
  assert.equal(keys, "here already");
  assert.ok(rows > 1_000);
});

test("backup: the archive is readable by its owner only and overwrites no file", async () => {
  const file = at("shop.tar.gz");
  const { code, stdout, stderr } = await stoa(`backup ${file} --json`);
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).file, file);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await writeFile(file, "another");
  const refused = await stoa(`backup ${file}`);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /shop\.tar\.gz already exists: name another file\./);
  assert.deepEqual(
    (await readdir(folder.path)).filter((name) => name.endsWith(".part")),
    [],
  );
});

test("restore into the database of a running service: refused", async () => {
  const { code, stderr } = await stoa(`restore ${at("piped.tar.gz")}`);
  assert.equal(code, 1);
  assert.match(stderr, /This database is not empty: there are rows in .* and \d+ more\./);
});

test("backup with a short passphrase: refused", async () => {
  const { code, stderr } = await stoa(`backup ${at("short.tar.gz")}`, { STOA_BACKUP_PASSPHRASE: "short" });
  assert.equal(code, 1);
  assert.match(stderr, /STOA_BACKUP_PASSPHRASE has fewer than 12 characters/);
});
