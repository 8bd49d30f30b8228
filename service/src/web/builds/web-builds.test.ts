import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createLog } from "../../core/log.ts";
import { sourceDigest } from "./source-digest.ts";
import { WebBuilds } from "./web-builds.ts";

async function createFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-builds-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test("a return to earlier sources: their build is served, not the one that was built last", async (t) => {
  const folder = await createFolder(t);
  for (const [digest, minutesAgo] of [
    [sourceDigest(), 60],
    ["0123456789abcdef", 1],
  ] as const) {
    const manifest = join(folder, digest, "manifest.json");
    await mkdir(join(folder, digest));
    await writeFile(manifest, "{}");
    const builtAt = new Date(Date.now() - minutesAgo * 60_000);
    await utimes(manifest, builtAt, builtAt);
  }
  const builds = new WebBuilds(folder);
  await builds.ensureCurrent(createLog("silent"));
  assert.equal(builds.current?.digest, sourceDigest());
});

test("a folder without a manifest, or with half of one: the other builds are served", async (t) => {
  const folder = await createFolder(t);
  const [whole, empty, broken] = ["00000000000000aa", "00000000000000bb", "00000000000000cc"];
  for (const digest of [whole, empty, broken]) await mkdir(join(folder, digest));
  await writeFile(join(folder, whole, "manifest.json"), "{}");
  await writeFile(join(folder, broken, "manifest.json"), '{"src/main.tsx":');
  assert.equal(new WebBuilds(folder).current?.digest, whole);
});

test("a file that could not be read: the next request tries again", async (t) => {
  const folder = await createFolder(t);
  const digest = "00000000000000aa";
  await mkdir(join(folder, digest));
  const manifest = { "src/main.tsx": { file: "main-1.js" } };
  await writeFile(join(folder, digest, "manifest.json"), JSON.stringify(manifest));
  const builds = new WebBuilds(folder);
  assert.ok(builds.current);
  await assert.rejects(builds.file("main-1.js"), { code: "ENOENT" });
  await writeFile(join(folder, digest, "main-1.js"), "1");
  assert.equal((await builds.file("main-1.js"))?.bytes.toString(), "1");
});

test("no build: pages reload ever more rarely, and seldom after the build failed", async (t) => {
  const builds = new WebBuilds(await createFolder(t), () => Promise.reject(new Error("no memory")));
  const start = performance.now();
  for (const [seconds, reloadSeconds] of [
    [0, 2],
    [100, 20],
    [1_000, 60],
  ] as const) {
    t.mock.method(performance, "now", () => start + seconds * 1_000);
    assert.deepEqual(builds.missing, { hasFailed: false, reloadSeconds });
  }
  t.mock.restoreAll();
  await assert.rejects(builds.ensureCurrent(createLog("silent")));
  assert.deepEqual(builds.missing, { hasFailed: true, reloadSeconds: 60 });
});
