import { MAX_IMPORTED_BYTES, MAX_IMPORTED_PRODUCTS } from "@stoa/contract";
import type { RawBody } from "../../platform/http/raw-body.ts";
import { collectItems, type Item, type ReadItem } from "./import-items.ts";
import type { ImportProblems } from "./import-problems.ts";
import { readJsonLines } from "./json-lines.ts";
import { readMarkdown } from "./markdown.ts";
import { type FolderFile, readZip } from "./product-zip.ts";

export function readImportFile({ type, bytes }: RawBody, problems: ImportProblems): Promise<Item[]> {
  return collectItems(readItems(type, bytes), problems, MAX_IMPORTED_PRODUCTS);
}

function readItems(type: string, bytes: Buffer): Iterable<ReadItem> | AsyncIterable<ReadItem> {
  if (type === "application/zip") return readMarkdownFiles(readZip(bytes, MAX_IMPORTED_BYTES));
  return type === "text/markdown" ? readMarkdownFiles([{ bytes }]) : readJsonLines(bytes);
}

export async function* readMarkdownFiles(
  files: Iterable<Partial<FolderFile> & { bytes: Buffer }> | AsyncIterable<FolderFile>,
): AsyncGenerator<ReadItem> {
  for await (const { name, bytes } of files) yield readMarkdown(bytes, name);
}
