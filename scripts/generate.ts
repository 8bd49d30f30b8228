/**
 * Generates the committed files: the table types from the migrated database, and from the contract the OpenAPI document and the sources of
 * the SDK. --check writes nothing and fails when a file is outdated.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
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
  const file = new URL(path, root);
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  if (checkOnly) {
    console.error(`${path} is stale: run npm run generate and commit it`);
    process.exitCode = 1;
  } else {
    await writeFile(file, text);
    console.log(`wrote ${path}`);
  }
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
await lintOpenApi();
