/**
 * Generates the committed files: the table types from the migrated database, from the contract the OpenAPI document and the sources of the
 * SDK, and the files of Swagger UI from its package. --check writes nothing and fails when a file is outdated.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import { openPool } from "../service/src/platform/db/database.ts";
import { migrate } from "../service/src/platform/db/migrate.ts";
import { startTemporaryPostgres, urlOf } from "../service/test/temporary-postgres.ts";
import { writeClient, writeResources, writeTypes } from "./sdk-source.ts";

const root = new URL("../", import.meta.url);
const checkOnly = process.argv.includes("--check");
const codegen = new URL("node_modules/kysely-codegen/dist/cli/bin.js", root).pathname;
const redocly = new URL("node_modules/@redocly/cli/bin/cli.js", root).pathname;
const run = promisify(execFile);

async function tableTypes(): Promise<string> {
  const server = await startTemporaryPostgres();
  const folder = await mkdtemp(join(tmpdir(), "stoa-generate-"));
  const pool = openPool({ target: server.connection });
  // The server stops at once, perhaps before a connection has closed.
  pool.on("error", () => {});
  try {
    await migrate(pool, new Date());
    const file = join(folder, "tables.ts");
    await run(process.execPath, [
      ...[
        codegen,
        "--dialect",
        "postgres",
        "--camel-case",
        "--url",
        urlOf(server, server.connection.database),
      ],
      ...[
        "--type-mapping",
        '{"int8":"ColumnType<number, bigint | number, bigint | number>"}',
        "--out-file",
        file,
      ],
    ]);
    return await readFile(file, "utf8");
  } finally {
    await pool.end();
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

async function openApi(): Promise<string> {
  const { endpoints } = await import("../contract/src/index.ts");
  const { openApiDocument } = await import("../service/src/platform/http/openapi.ts");
  return `${JSON.stringify(openApiDocument(endpoints, null, "X-Service-"), null, 2)}\n`;
}

async function keep(path: string, text: string): Promise<void> {
  const committed = await readFile(new URL(path, root), "utf8").catch(() => "");
  if (committed !== text) await replace(path, text);
}

async function keepCompressed(path: string, content: Buffer): Promise<void> {
  const committed = await readFile(new URL(path, root)).catch(() => null);
  // The compressed bytes depend on the version of zlib.
  if (committed && brotliDecompressSync(committed).equals(content)) return;
  await replace(path, brotliCompressSync(content));
}

async function replace(path: string, content: string | Buffer): Promise<void> {
  if (checkOnly) {
    console.error(`${path} is stale: run npm run generate and commit it`);
    process.exitCode = 1;
  } else {
    await writeFile(new URL(path, root), content);
    console.log(`wrote ${path}`);
  }
}

/** What the API reference loads, and its licenses: an installation for production has these files and not the package. */
async function keepSwaggerUi(): Promise<void> {
  const read = (name: string) => readFile(new URL(`node_modules/swagger-ui-dist/${name}`, root));
  const folder = "service/src/platform/http/swagger-ui";
  for (const name of ["swagger-ui-bundle.js", "swagger-ui.css"])
    await keepCompressed(`${folder}/${name}.br`, await read(name));
  for (const name of ["LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"])
    await keep(`${folder}/${name}`, (await read(name)).toString());
}

async function lintOpenApi(): Promise<void> {
  const file = new URL("docs/openapi.gen.json", root).pathname;
  try {
    await run(process.execPath, [redocly, "lint", file, "--config", new URL("redocly.yaml", root).pathname], {
      env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    console.error(stdout, stderr);
    process.exitCode = 1;
  }
}

await keep("service/src/platform/db/tables.gen.ts", await tableTypes());
const document = await openApi();
await keep("docs/openapi.gen.json", document);
const { endpoints } = await import("../contract/src/index.ts");
await keep("sdk/src/types.gen.ts", writeTypes(JSON.parse(document)));
await keep("sdk/src/resources.gen.ts", writeResources(endpoints, JSON.parse(document)));
await keep("sdk/src/stoa.gen.ts", writeClient(endpoints));
await keepSwaggerUi();
await lintOpenApi();
