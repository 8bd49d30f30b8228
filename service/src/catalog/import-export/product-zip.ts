import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import type { Entry, ZipFile } from "yauzl";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { lastOf } from "../../core/required.ts";
import { MAX_ITEM_BYTES } from "./import-items.ts";

export interface FolderFile {
  name: string;
  bytes: Buffer;
}

const MAX_ENTRIES = 10_000;
const MAX_NAME_CHARACTERS = 200;

/** Markdown files except README and hidden ones, such as those in `.git` and `__MACOSX`. */
export function isProductFile(path: string): boolean {
  const parts = path.split("/");
  const name = lastOf(parts);
  return (
    /\.(md|markdown)$/i.test(name) && !/^readme\./i.test(name) && !parts.some((part) => /^[._]/.test(part))
  );
}

/** Yields the product files one at a time, at most `maxBytes` together: a small zip can contain a large text. */
export async function* readZip(bytes: Buffer, maxBytes: number): AsyncGenerator<FolderFile> {
  const { fromBufferPromise } = await import("yauzl");
  try {
    const zip = await fromBufferPromise(bytes, { lazyEntries: true });
    if (zip.entryCount > MAX_ENTRIES) throw invalidRequest("body", `holds more than ${MAX_ENTRIES} files`);
    let left = maxBytes;
    for await (const entry of zip.eachEntry()) {
      if (!isProductFile(entry.fileName)) continue;
      left -= entry.uncompressedSize;
      if (left < 0) throw invalidRequest("body", `unpacks to more than ${maxBytes} bytes`);
      yield { name: entry.fileName.slice(0, MAX_NAME_CHARACTERS), bytes: await unpack(zip, entry) };
    }
  } catch (error) {
    // Any other error of the reader means that the zip is invalid.
    throw error instanceof ApiError ? error : invalidRequest("body", "is not a zip that can be read");
  }
}

async function unpack(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const name = entry.fileName.slice(0, MAX_NAME_CHARACTERS);
  if (entry.uncompressedSize > MAX_ITEM_BYTES)
    throw invalidRequest("body", `holds ${name}, which is larger than ${MAX_ITEM_BYTES} bytes`);
  if (!entry.canDecodeFileData())
    throw invalidRequest("body", `holds ${name}, which is encrypted or packed in an unknown way`);
  const bytes = await buffer(await zip.openReadStreamPromise(entry));
  if (crc32(bytes) !== entry.crc32)
    throw invalidRequest("body", `is damaged: ${name} is not what was packed`);
  return bytes;
}

/** Compresses file by file, and requests the next one only while one is being written. */
export function toZip(files: AsyncIterable<{ name: string; text: string }>, at: Date): Readable {
  return Readable.from(zipChunks(files, at), { objectMode: false });
}

async function* zipChunks(files: AsyncIterable<{ name: string; text: string }>, mtime: Date) {
  const { ZipFile: Packer } = await import("yazl");
  const zip = new Packer();
  const packing = (async () => {
    for await (const { name, text } of files) await pack(zip, name, text, mtime);
    zip.end();
  })();
  packing.catch((error) => (zip.outputStream as Readable).destroy(error));
  yield* zip.outputStream as Readable;
  await packing;
}

/** Resolves when it is this file's turn. */
function pack(
  zip: InstanceType<typeof import("yazl").ZipFile>,
  name: string,
  text: string,
  mtime: Date,
): Promise<void> {
  // The packer keeps this closure until the zip is complete, so the text is released here.
  let bytes: Buffer | null = Buffer.from(text);
  return new Promise((resolve) => {
    zip.addReadStreamLazy(name, { mtime }, (give) => {
      give(null, Readable.from([bytes]));
      bytes = null;
      resolve();
    });
  });
}
