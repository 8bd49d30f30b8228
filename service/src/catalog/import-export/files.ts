import { MAX_IMPORTED_BYTES, MAX_IMPORTED_PRODUCTS } from "@stoa/contract";
import type { RawBody } from "../../platform/http/raw-body.ts";
import { collect, type Item, type Read } from "./items.ts";
import { readJsonLines } from "./json-lines.ts";
import { readMarkdown } from "./markdown.ts";
import type { Problems } from "./problems.ts";
import { type FolderFile, readZip } from "./zip.ts";

/** The products of a file that came by the API, by its media type. */
export function readFile({ type, bytes }: RawBody, problems: Problems): Promise<Item[]> {
  return collect(readsOf(type, bytes), problems, MAX_IMPORTED_PRODUCTS);
}

function readsOf(type: string, bytes: Buffer): Iterable<Read> | AsyncIterable<Read> {
  if (type === "application/zip") return readFolder(readZip(bytes, MAX_IMPORTED_BYTES));
  return type === "text/markdown" ? readFolder([{ bytes }]) : readJsonLines(bytes);
}

export async function* readFolder(
  files: Iterable<Partial<FolderFile> & { bytes: Buffer }> | AsyncIterable<FolderFile>,
): AsyncGenerator<Read> {
  for await (const { name, bytes } of files) yield readMarkdown(bytes, name);
}
