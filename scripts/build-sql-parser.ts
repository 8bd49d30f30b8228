/**
 * Writes evaluation/src/sql-parser.gen.js: the MySQL build of node-sql-parser, minified. The package installs 89 MB for 13
 * dialects, and is no dependency of this repository: the argument names a folder that has it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const TARGET = resolve(import.meta.dirname, "../evaluation/src/sql-parser.gen.js");

/** @param modules - a `node_modules` folder with node-sql-parser */
export async function writeSqlParser(modules: string): Promise<void> {
  const folder = join(modules, "node-sql-parser");
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const { outputFiles } = await build({
    entryPoints: [join(folder, "build/mysql.js")],
    bundle: true,
    minify: true,
    format: "iife",
    globalName: "mysql",
    target: "es2022",
    legalComments: "none",
    write: false,
  });
  // Inside a function the engine only skims it until the first SQL assertion.
  writeFileSync(
    TARGET,
    `/*! node-sql-parser ${version} (MySQL build, minified), Apache-2.0, https://github.com/taozhi8833998/node-sql-parser. Written by scripts/promptfoo-verdicts.ts. */
export function createParser() {
${outputFiles[0]!.text.trim()}
const parser = new mysql.Parser();
return { parse: (sql) => parser.parse(sql, { database: "MySQL" }) };
}
`,
  );
}
