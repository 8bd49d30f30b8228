import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isFullSize } from "../service/test/full-size.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PATTERNS = ["{contract,evaluation,service,sdk,cli,bench}/**/*.test.ts", "e2e/**/*.e2e.ts"];
const HELPERS = "{service,cli}/test/*.ts";
/**
 * Tests that start processes take longest, so they start first. The first one loads the demo shop, which other end-to-end
 * tests wait for. Tests in their own process come later: one measures memory, which is unreliable while two demo
 * shops load.
 */
const LONG = [/\/backup\.full\.e2e\.ts$/, /readme\.e2e\.ts$|crashes/, /\.e2e\.ts$/, /\.process\.test\.ts$/];
/** Files for `npm run test:full` only. */
const FULL_RUN = /\.full\.\w+\.ts$/;
const IMPORT = /from "([^"]+)"/g;
/** How other workspaces import the helpers of the service's tests. */
const SERVICE_HELPER = /^@stoa\/service\/test(?=\/)/;

const filesOf = (pattern: string | string[]) =>
  globSync(pattern, { cwd: ROOT, exclude: ["**/node_modules/**"] })
    .sort()
    .map((file) => resolve(ROOT, file));

const importsOf = (file: string): string[] =>
  [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, path]) => {
    if (path!.startsWith(".")) return resolve(dirname(file), path!);
    return path!.replace(SERVICE_HELPER, resolve(ROOT, "service/test/"));
  });

/** Test helpers that start a process, directly or through another helper. */
function findProcessHelpers(): Set<string> {
  const starters = new Set(["node:child_process"]);
  const helpers = filesOf(HELPERS);
  for (let before = 0; before < starters.size; ) {
    before = starters.size;
    for (const helper of helpers)
      if (importsOf(helper).some((path) => starters.has(path))) starters.add(helper);
  }
  return starters;
}

const isLong = (file: string) => LONG.some((pattern) => pattern.test(file));

/** Every test file of the run, the long ones first, so that no core waits for one of them at the end. */
export function listTestFiles(): string[] {
  const files = filesOf(PATTERNS).filter((file) => isFullSize || !FULL_RUN.test(file));
  const rankOf = (file: string) =>
    isLong(file) ? LONG.findIndex((pattern) => pattern.test(file)) : LONG.length;
  return files.toSorted((one, other) => rankOf(one) - rankOf(other));
}

export function listQuickTestFiles(): string[] {
  const starters = findProcessHelpers();
  return listTestFiles().filter(
    (file) => !isLong(file) && !importsOf(file).some((path) => starters.has(path)),
  );
}
