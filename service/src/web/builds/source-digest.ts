import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** A folder for each build, named by the digest of its sources. */
export const BUILDS = join(ROOT, "web/dist");

/** What the web client is made of. The lock file decides about the packages. */
const SOURCES = [
  "web/src/**/*.{ts,tsx,css}",
  "web/vite.config.ts",
  "web/package.json",
  "sdk/src/*.ts",
  "contract/src/catalog/cover.ts",
  "evaluation/src/statistics.ts",
  "package-lock.json",
];

/** Names the build of the present sources. */
export function sourceDigest(): string {
  const digest = createHash("sha256");
  for (const path of globSync(SOURCES, { cwd: ROOT }).sort())
    digest.update(`${path}\n`).update(readFileSync(join(ROOT, path)));
  return digest.digest("hex").slice(0, 16);
}
