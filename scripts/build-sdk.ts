/**
 * Compiles the SDK into `sdk/dist`: minified JavaScript, and types with comments. With --check it compiles into a temporary folder
 * and fails where the package is over its budgets.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { transformSync } from "esbuild";

const ROOT = resolve(import.meta.dirname, "..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const CONFIG = join(ROOT, "sdk/tsconfig.build.json");
const KB = 1_000;

/** What a program loads that imports the entry, as it is published, compressed by gzip. */
const budgets = [
  { entry: "index.js", maxBytes: 12 * KB },
  { entry: "webhooks.js", maxBytes: 1.5 * KB },
];
const MAX_INSTALLED_BYTES = 400 * KB;

const isCheck = process.argv.includes("--check");
const folder = isCheck ? mkdtempSync(join(tmpdir(), "stoa-sdk-")) : join(ROOT, "sdk/dist");
rmSync(folder, { recursive: true, force: true });
const compile = (...options: string[]) =>
  execFileSync(process.execPath, [TSC, "-p", CONFIG, "--outDir", folder, ...options], { stdio: "inherit" });
compile();
for (const file of readdirSync(folder)) minify(join(folder, file));
compile("--declaration", "--emitDeclarationOnly");

/** Without a format, esbuild keeps top-level names, which stack traces show. */
function minify(path: string): void {
  const { code } = transformSync(readFileSync(path, "utf8"), {
    minify: true,
    target: "es2022",
    // Node prints the line of an uncaught error.
    lineLimit: 200,
  });
  writeFileSync(path, code);
}

/** The entry and every module that it imports, once each. */
function modulesOf(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path] of readFileSync(join(folder, file), "utf8").matchAll(/from ?"\.\/([^"]+)"/g))
    if (path) modulesOf(path, found);
  return found;
}

const problems: string[] = [];
for (const { entry, maxBytes } of budgets) {
  const text = [...modulesOf(entry)].map((file) => readFileSync(join(folder, file), "utf8")).join("");
  const bytes = gzipSync(text, { level: 9 }).length;
  console.log(`${entry}: ${bytes} bytes compressed`);
  if (bytes > maxBytes) problems.push(`${entry} has ${bytes} bytes, and may have ${maxBytes}`);
}
const installed = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
console.log(`installed: ${installed} bytes`);
if (installed > MAX_INSTALLED_BYTES)
  problems.push(`The package has ${installed} bytes, and may have ${MAX_INSTALLED_BYTES}`);
const { dependencies = {} } = JSON.parse(readFileSync(join(ROOT, "sdk/package.json"), "utf8")) as {
  dependencies?: object;
};
if (Object.keys(dependencies).length > 0) problems.push("The package must have no dependencies");
if (isCheck) rmSync(folder, { recursive: true });
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
