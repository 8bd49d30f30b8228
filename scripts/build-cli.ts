/**
 * Bundles the command line into `cli/dist`, with the SDK and all other packages that it uses, so that it installs alone and starts
 * quickly: a chunk for each command, and `licenses.txt` for what was bundled. With --check it builds into a temporary folder.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const ROOT = resolve(import.meta.dirname, "..");
const CLI = join(ROOT, "cli");

const isCheck = process.argv.includes("--check");
const folder = isCheck ? mkdtempSync(join(tmpdir(), "stoa-cli-")) : join(CLI, "dist");
rmSync(folder, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: [join(CLI, "src/main.ts")],
  outdir: folder,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.12",
  chunkNames: "chunks/[name]-[hash]",
  // Errors are told apart by the names of their classes.
  keepNames: true,
  minifySyntax: true,
  minifyWhitespace: true,
  metafile: true,
  absWorkingDir: ROOT,
  tsconfig: join(ROOT, "tsconfig.json"),
  // Packages in CommonJS ask for Node's own modules.
  banner: { js: 'import{createRequire as _r}from"node:module";const require=_r(import.meta.url);' },
});

/** Where each bundled package is, from the paths of its files. */
const packages = new Set(
  Object.keys(metafile.inputs).flatMap(
    (path) => /^.*node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(path)?.[0] ?? [],
  ),
);
const licenses = [...packages].sort().map((path) => {
  const place = join(ROOT, path);
  const { name, version, license } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Record<
    string,
    string
  >;
  const file = readdirSync(place).find((each) => /^licen[cs]e/i.test(each));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(place, file), "utf8") : ""}`;
});
writeFileSync(join(folder, "licenses.txt"), licenses.join("\n----\n\n"));
console.log(`stoa: ${Object.keys(metafile.outputs).length} files, with ${packages.size} packages`);
if (isCheck) rmSync(folder, { recursive: true });
