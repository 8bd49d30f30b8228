/**
 * Builds the web client into `web/dist/{digest of its sources}`, with each file compressed ahead. Does nothing if that build exists.
 * With --check it compares what a first visit loads with its budgets.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";
import { BUILDS, ROOT, sourceDigest } from "../service/src/web/builds/source-digest.ts";
import { WebBuild } from "../service/src/web/builds/web-build.ts";

const KEPT_BUILDS = 3;
const HOUR_MS = 3_600_000;
const KB = 1_000;
/** Scripts of a first visit, gzip. */
const FIRST_VISIT_KB = 170;
/** Scripts that a page adds to those of every page, gzip. */
const PAGE_KB = 60;
const FIRST_VISIT_PAGES = ["src/pages/market/home.tsx", "src/pages/market/product.tsx"];
/** Fonts are compressed by themselves. */
const COMPRESSIBLE = /\.(js|css|svg)$/;

const digest = sourceDigest();
const folder = join(BUILDS, digest);
if (!existsSync(join(folder, "manifest.json"))) await buildInto(folder);
// The newest is served.
else utimesSync(join(folder, "manifest.json"), new Date(), new Date());
removeOldBuilds();
if (process.argv.includes("--check")) checkBudgets(new WebBuild(BUILDS, digest));

/** Under another name first: two processes may build at once, and an interrupted one must leave no half. */
async function buildInto(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}`;
  try {
    await build({
      configFile: join(ROOT, "web/vite.config.ts"),
      logLevel: "warn",
      build: { outDir: draft, emptyOutDir: true },
    });
    for (const name of readdirSync(draft).filter((name) => COMPRESSIBLE.test(name)))
      compress(join(draft, name));
    replace(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** What stands there is the build of another process, or the rest of one whose removal was interrupted. */
function replace(draft: string, folder: string): void {
  if (existsSync(join(folder, "manifest.json"))) return;
  remove(folder);
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(join(folder, "manifest.json"))) throw error;
  }
}

/** Under another name first: an interrupted removal must leave no half that is served. */
function remove(folder: string): void {
  const removed = `${folder}.removed.${process.pid}`;
  try {
    renameSync(folder, removed);
  } catch {
    // It is not there, or another process removes it.
  }
  rmSync(removed, { recursive: true, force: true });
}

function compress(path: string): void {
  const bytes = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
}

/** The last ones stay: pages that are open load their files from there. */
function removeOldBuilds(): void {
  mkdirSync(BUILDS, { recursive: true });
  const timeOf = (path: string) => statSync(join(BUILDS, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const names = readdirSync(BUILDS);
  const builds = names
    .filter((name) => /^[0-9a-f]{16}$/.test(name))
    .map((name) => ({ name, builtAt: timeOf(`${name}/manifest.json`) }))
    .sort((a, b) => b.builtAt - a.builtAt);
  for (const { name } of builds.slice(KEPT_BUILDS)) remove(join(BUILDS, name));
  // Left by processes that were killed.
  const left = names.filter((name) => /^[0-9a-f]{16}\./.test(name) && Date.now() - timeOf(name) > HOUR_MS);
  for (const name of left) rmSync(join(BUILDS, name), { recursive: true, force: true });
}

function checkBudgets(build: WebBuild): void {
  const sizeOf = (names: string[]) =>
    names.reduce((sum, name) => sum + statSync(join(folder, `${name}.gz`)).size, 0) / KB;
  const problems: string[] = [];
  const common = new Set(scriptsOf(build));
  const pages = readdirSync(join(ROOT, "web/src/pages"), { recursive: true, encoding: "utf8" });
  for (const file of pages.filter((name) => name.endsWith(".tsx"))) {
    const page = `src/pages/${file}`;
    const scripts = scriptsOf(build, page);
    const [total, own] = [sizeOf(scripts), sizeOf(scripts.filter((name) => !common.has(name)))];
    console.log(
      `web: ${page} ${own.toFixed(1)} kB of its own, ${total.toFixed(1)} kB on a first visit (gzip)`,
    );
    if (own > PAGE_KB) problems.push(`${page} adds ${own.toFixed(1)} kB of scripts; at most ${PAGE_KB}`);
    if (FIRST_VISIT_PAGES.includes(page) && total > FIRST_VISIT_KB)
      problems.push(
        `a first visit of ${page} loads ${total.toFixed(1)} kB of scripts; at most ${FIRST_VISIT_KB}`,
      );
  }
  for (const problem of problems) console.error(`web: ${problem}`);
  if (problems.length > 0) process.exit(1);
}

function scriptsOf(build: WebBuild, ...page: string[]): string[] {
  const { script, modules } = build.filesOf(page);
  return [script, ...modules];
}
