import assert from "node:assert/strict";
import { Readable } from "node:stream";
import yazl from "yazl";
import type { Client, Reply } from "./market.ts";

export const JSONL = "application/jsonl";
export const MARKDOWN = "text/markdown";
export const ZIP = "application/zip";

type Bytes = string | Uint8Array<ArrayBuffer>;

/** Posts an import; `query` starts with a question mark. */
export const sendImport = (
  client: Client,
  body: Bytes,
  { type = JSONL, query = "", ...headers }: { type?: string; query?: string; [header: string]: string } = {},
): Promise<Reply> =>
  client.request("POST", `/v1/products/import${query}`, {
    body,
    headers: { "content-type": type, ...headers },
  });

export const jsonLines = (...products: unknown[]) =>
  products.map((product) => JSON.stringify(product)).join("\n");

/** All products of a seller, one per line of the export. */
export async function exportOf(client: Client): Promise<Record<string, unknown>[]> {
  const { status, text } = await client.get("/v1/products/export");
  assert.equal(status, 200, text);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

export async function zipExportOf(client: Client, origin: string): Promise<Uint8Array<ArrayBuffer>> {
  const headers = { authorization: `Bearer ${client.key}` };
  const reply = await fetch(`${origin}/v1/products/export?format=markdown`, { headers });
  assert.equal(reply.status, 200);
  return new Uint8Array(await reply.arrayBuffer());
}

/** A zip of the files; `compress` false stores their bytes unchanged. */
export async function zipOf(
  files: Record<string, string>,
  compress = true,
): Promise<Uint8Array<ArrayBuffer>> {
  const zip = new yazl.ZipFile();
  for (const [name, content] of Object.entries(files))
    zip.addBuffer(Buffer.from(content), name, { compress });
  zip.end();
  return new Uint8Array(
    await new Response(Readable.toWeb(zip.outputStream as Readable) as ReadableStream).arrayBuffer(),
  );
}
