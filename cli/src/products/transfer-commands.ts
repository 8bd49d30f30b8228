import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { extname } from "node:path";
import type { ImportResult } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";

const types: Record<string, string> = {
  ".md": "text/markdown",
  ".markdown": "text/markdown",
  ".jsonl": "application/jsonl",
  ".ndjson": "application/jsonl",
  ".zip": "application/zip",
};

/** For a thousand products. */
const TIMEOUT_MS = 600_000;

interface ImportOptions {
  dryRun?: boolean;
  publish?: boolean;
}

interface ExportOptions {
  format: string;
  output?: string;
}

export function defineTransfer(products: Command): void {
  const imports = products
    .command("import")
    .description("Create and change products from a file: all of them, or none if there is a mistake")
    .argument("<file>", "Markdown, JSON Lines, or a zip of Markdown files")
    .option("--dry-run", "only check")
    .option("--publish", "then publish each product that is complete")
    .action(action<ImportOptions, [string]>(importProducts));
  example(
    imports,
    "stoa products import prompts.zip --dry-run",
    "stoa products import prompts.zip --publish",
  );
  const exports = products
    .command("export")
    .description("Export all your products, without files and images")
    .option("--format <format>", "jsonl, or markdown for a zip of Markdown files", "jsonl")
    .option("-o, --output <file>", "the file to write; without it, standard output")
    .action(action<ExportOptions, []>(exportProducts));
  example(
    exports,
    "stoa products export --output products.jsonl",
    "stoa products export --format markdown -o products.zip",
  );
}

async function importProducts(cli: Cli, { dryRun, publish }: ImportOptions, path: string): Promise<void> {
  const type = types[extname(path).toLowerCase()];
  if (!type)
    throw new UsageError(
      `${path} is no file to import`,
      `The name must end with ${Object.keys(types).join(", ")}.`,
    );
  const { openUpload } = await import("../progress.ts");
  const { file, progress } = await openUpload(path);
  const query = { ...(dryRun && { dryRun }), ...(publish && { publish }) };
  // A repeat after an interruption imports nothing twice.
  const idempotencyKey = `import-${await digestOf(path, JSON.stringify(query))}`;
  const stoa = await cli.stoa();
  const result = await stoa.products
    .import({ content: file, type }, query, { timeoutMs: TIMEOUT_MS, idempotencyKey })
    .catch((error: unknown) => {
      throw withPlaces(error, path);
    })
    .finally(() => progress.end());
  await showImport(cli, result);
}

async function digestOf(path: string, query: string): Promise<string> {
  const hash = createHash("sha256").update(query);
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

interface Problem {
  field: string;
  reason: string;
  line?: number;
  file?: string;
}

/** Each problem with its file and line. */
function withPlaces(error: unknown, path: string): unknown {
  const { details } = error as { details?: { errors?: Problem[]; total?: number } };
  const problems = details?.errors;
  if (!problems?.some(({ line }) => line !== undefined)) return error;
  const more = (details?.total ?? 0) - problems.length;
  const errors = problems.map(({ file, line, field, reason }) => ({
    field: `${file ?? path}:${line}`,
    reason: `${field} ${reason}`,
  }));
  if (more > 0) errors.push({ field: "and", reason: `${more} more` });
  return Object.assign(
    new CommandError(`${path} was not imported`, "Correct the file, then repeat the command."),
    {
      details: { errors },
    },
  );
}

async function showImport(cli: Cli, result: ImportResult): Promise<void> {
  if (cli.output.isJson) return cli.output.object(result, []);
  await cli.output.list(result.products, [
    { field: "id" },
    { field: "title" },
    { field: "outcome" },
    { field: "status" },
    {
      field: "notPublished",
      title: "lacks",
      format: ({ notPublished = [] }) =>
        notPublished.map(({ field, reason }) => `${field} ${reason}`).join("; "),
    },
  ]);
  const { created, updated, unchanged, published } = result;
  const done = result.dryRun ? "Nothing was written. An import would have" : "Products:";
  cli.output.report(
    `${done} ${created} created, ${updated} updated, ${unchanged} unchanged, ${published} published.`,
  );
}

async function exportProducts(cli: Cli, { format, output }: ExportOptions): Promise<void> {
  if (format === "markdown" && output === undefined && process.stdout.isTTY)
    throw new UsageError("A zip cannot be shown in a terminal", "Name a file: --output products.zip.");
  const { saveResponse } = await import("../save-response.ts");
  const stoa = await cli.stoa();
  const response = await stoa.products.export({ format }, { timeoutMs: TIMEOUT_MS });
  await saveResponse(cli, response, { path: output, label: "products" });
}
