import { createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { type ImportResult, permissions } from "@stoa/contract";
import { findUser } from "../../accounts/people/users.ts";
import { exportJsonLines, iterateMarkdownFiles } from "../../catalog/import-export/exports.ts";
import { readMarkdownFiles } from "../../catalog/import-export/import-file.ts";
import { collectItems, type ReadItem } from "../../catalog/import-export/import-items.ts";
import type { LocatedProblem } from "../../catalog/import-export/import-problems.ts";
import { type ImportOptions, importProducts } from "../../catalog/import-export/imports.ts";
import { readJsonLines } from "../../catalog/import-export/json-lines.ts";
import { type FolderFile, isProductFile, readZip } from "../../catalog/import-export/product-zip.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";

/** More than the API accepts, since the operator owns the files. */
const MAX_PRODUCTS = 10_000;
const MAX_UNZIPPED_BYTES = 200 * 1024 * 1024;

export interface ExportOptions {
  seller: string;
  format: "jsonl" | "markdown";
  output?: string;
}

/** Returns the lines to print; none when the products themselves go to stdout. */
export async function exportProducts(
  ctx: Context,
  { seller, format, output }: ExportOptions,
): Promise<object | null> {
  const { id } = await findUser(ctx, seller);
  if (format === "markdown") return exportToFolder(ctx, id, output);
  if (output === undefined) return await exportToStdout(ctx, id);
  // A temporary name until the export is complete.
  const part = `${output}.part`;
  try {
    await pipeline(exportJsonLines(ctx, { authorId: id }), createWriteStream(part));
    await rename(part, output);
  } finally {
    await rm(part, { force: true });
  }
  return { output };
}

async function exportToStdout(ctx: Context, sellerId: string): Promise<null> {
  try {
    await pipeline(exportJsonLines(ctx, { authorId: sellerId }), process.stdout, { end: false });
  } catch (error) {
    // EPIPE: the reader, such as `head`, has read enough.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
  return null;
}

/** A new folder only: an old file with an earlier title would be a second file of its product. */
async function exportToFolder(ctx: Context, sellerId: string, folder: string | undefined) {
  if (folder === undefined) throw new Error("Markdown is a file a product: name a folder by --output.");
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new Error(`${folder} is not empty: name a new folder.`);
  let products = 0;
  for await (const { name, text } of iterateMarkdownFiles(ctx, { authorId: sellerId })) {
    await writeFile(join(folder, name), text);
    products++;
  }
  return { output: folder, products };
}

export async function importProductFiles(
  ctx: Context,
  seller: string,
  path: string,
  options: ImportOptions,
): Promise<ImportResult> {
  const { id } = await findUser(ctx, seller);
  const reads = await readProductFiles(path);
  const caller: Member = {
    ...{ kind: "key", keyId: "operator", userId: id, role: "seller", plan: "free", quota: null },
    permissions: new Set(permissions),
  };
  return importProducts(
    ctx,
    caller,
    (problems) => collectItems(reads, problems, MAX_PRODUCTS),
    options,
    null,
  );
}

async function readProductFiles(path: string): Promise<Iterable<ReadItem> | AsyncIterable<ReadItem>> {
  if ((await stat(path)).isDirectory()) return readMarkdownFiles(listFiles(path));
  const bytes = await readFile(path);
  const kind = extname(path).toLowerCase();
  if (kind === ".jsonl" || kind === ".ndjson") return readJsonLines(bytes);
  if (kind === ".md" || kind === ".markdown") return readMarkdownFiles([{ bytes }]);
  if (kind === ".zip") return readMarkdownFiles(readZip(bytes, MAX_UNZIPPED_BYTES));
  throw new Error(`${path} is no .jsonl, .md or .zip file and no folder.`);
}

async function* listFiles(folder: string): AsyncGenerator<FolderFile> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
    .filter(isProductFile);
  for (const name of names.toSorted()) yield { name, bytes: await readFile(join(folder, name)) };
}

/** One line per problem, like a compiler. null: the error has no lines. */
export function formatProblems(error: unknown): string[] | null {
  if (!(error instanceof ApiError) || error.details?.["total"] === undefined) return null;
  const { errors, total } = error.details as { errors: LocatedProblem[]; total: number };
  const lines = errors.map((problem) =>
    replaceControlCharacters(`${formatLocation(problem)}: ${problem.field}: ${problem.reason}`),
  );
  return total > errors.length ? [...lines, `… and ${total - errors.length} more`] : lines;
}

export const formatUnpublished = ({ products }: ImportResult): string[] =>
  products.flatMap(({ notPublished = [], ...place }) =>
    notPublished.map(({ field, reason }) =>
      replaceControlCharacters(`${formatLocation(place)}: not published: ${field}: ${reason}`),
    ),
  );

/** Files and fields may have hostile names, which must not control the terminal. */
const replaceControlCharacters = (line: string) => line.replace(/\p{Cc}/gu, "?");

const formatLocation = ({ file, line }: { file?: string | undefined; line: number }) =>
  file === undefined ? `line ${line}` : `${file}:${line}`;
