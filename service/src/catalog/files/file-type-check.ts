import { type FileHandle, open } from "node:fs/promises";
import { TextDecoder } from "node:util";
import { invalidRequest } from "../../core/errors.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { extensionOf } from "./file-name.ts";
import { type FileType, fileTypeOfExtension, fileTypes, GENERIC_MEDIA_TYPES } from "./file-types.ts";
import { InvalidArchiveError, readZipEntries, type ZipEntry } from "./zip-archive.ts";

const HEAD_BYTES = 4_096;
/** Checked in one step, which takes some milliseconds for any content. */
const CHUNK_BYTES = 64 * 1024;
/** Of a character that a PDF writes as #41. */
const ESCAPED_BYTES = 3;

const ascii = (text: string) => Buffer.from(text, "latin1");
const signatureBytes = (offset: number, ...bytes: (Buffer | number[])[]) => ({
  offset,
  bytes: Buffer.concat(bytes.map((part) => Buffer.from(part))),
});

interface Signature {
  what: string;
  /** An accepted family; without one, the file is rejected by its `what`. */
  family?: FileType["family"];
  marks: { offset: number; bytes: Buffer }[];
}

/** By the first bytes of a file. */
const SIGNATURES: readonly Signature[] = [
  { what: "a PDF", family: "pdf", marks: [signatureBytes(0, ascii("%PDF-"))] },
  { what: "a zip archive", family: "zip", marks: [signatureBytes(0, ascii("PK\x03\x04"))] },
  { what: "a PNG picture", family: "png", marks: [signatureBytes(0, ascii("\x89PNG\r\n\x1a\n"))] },
  { what: "a JPEG picture", family: "jpeg", marks: [signatureBytes(0, ascii("\xff\xd8\xff"))] },
  {
    what: "a WebP picture",
    family: "webp",
    marks: [signatureBytes(0, ascii("RIFF")), signatureBytes(8, ascii("WEBP"))],
  },
  { what: "a GIF picture", family: "gif", marks: [signatureBytes(0, ascii("GIF87a"))] },
  { what: "a GIF picture", family: "gif", marks: [signatureBytes(0, ascii("GIF89a"))] },
  { what: "an AVIF picture", family: "avif", marks: [signatureBytes(4, ascii("ftypavif"))] },
  { what: "an AVIF picture", family: "avif", marks: [signatureBytes(4, ascii("ftypavis"))] },
  { what: "a Windows program", marks: [signatureBytes(0, ascii("MZ"))] },
  { what: "a Linux program", marks: [signatureBytes(0, ascii("\x7fELF"))] },
  ...["\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe"].map((magic) => ({
    what: "a macOS program",
    marks: [signatureBytes(0, ascii(magic))],
  })),
  { what: "a Java or macOS program", marks: [signatureBytes(0, ascii("\xca\xfe\xba\xbe"))] },
  { what: "WebAssembly", marks: [signatureBytes(0, ascii("\0asm"))] },
  { what: "a script", marks: [signatureBytes(0, ascii("#!"))] },
  { what: "a script", marks: [signatureBytes(0, ascii("\xef\xbb\xbf#!"))] },
  { what: "an empty or split zip archive", marks: [signatureBytes(0, ascii("PK\x05\x06"))] },
  { what: "a RAR archive", marks: [signatureBytes(0, ascii("Rar!\x1a\x07"))] },
  { what: "a 7-Zip archive", marks: [signatureBytes(0, ascii("7z\xbc\xaf\x27\x1c"))] },
  { what: "a gzip archive", marks: [signatureBytes(0, ascii("\x1f\x8b"))] },
  { what: "a bzip2 archive", marks: [signatureBytes(0, ascii("BZh"))] },
  { what: "an xz archive", marks: [signatureBytes(0, ascii("\xfd7zXZ\0"))] },
  { what: "a Zstandard archive", marks: [signatureBytes(0, ascii("\x28\xb5\x2f\xfd"))] },
  { what: "a tar archive", marks: [signatureBytes(257, ascii("ustar"))] },
  {
    what: "an old Office document, which may have macros",
    marks: [signatureBytes(0, ascii("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))],
  },
  { what: "rich text, which may have objects inside", marks: [signatureBytes(0, ascii("{\\rtf"))] },
  { what: "a SQLite database", marks: [signatureBytes(0, ascii("SQLite format 3\0"))] },
  { what: "a TIFF picture", marks: [signatureBytes(0, ascii("II*\0"))] },
  { what: "a TIFF picture", marks: [signatureBytes(0, ascii("MM\0*"))] },
  { what: "a HEIF picture or a video", marks: [signatureBytes(4, ascii("ftyp"))] },
];

/**
 * Text that a browser would run as a page. `(?!-->)` lets a comment end at its first end only: otherwise thirty comments
 * would cause exponential backtracking.
 */
const MARKUP =
  /^\s*(<!--((?!-->)[\s\S])*-->\s*)*<(!doctype\s+html|html|head|body|script|iframe|svg|\?xml|!doctype\s+svg)/i;
/** The same inside another format: a file that is two things at once. */
const HIDDEN_MARKUP = /<(!doctype\s+html|html|script|iframe|svg)[\s>/]/i;
/** Active parts of a PDF, in its uncompressed objects. */
const ACTIVE_PDF = ["/JavaScript", "/JS(", "/JS (", "/JS<", "/Launch", "/EmbeddedFile", "/RichMedia"];
/** The test virus of all scanners, split so that scanners ignore this file. */
const EICAR = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].join("");
const ZIP_END = "PK\x05\x06";
/** An archive's end record lies at most this far from the end of the file. */
const ZIP_TAIL_BYTES = 22 + 65_535;

export interface DetectedType {
  what: string;
  family: FileType["family"] | null;
}

/** Detects a binary type by the first bytes. null: possibly text, which needs a full scan. */
export function detectType(head: Buffer): DetectedType | null {
  const fits = ({ marks }: Signature) =>
    marks.every(({ offset, bytes }) => head.subarray(offset, offset + bytes.length).equals(bytes));
  const sign = SIGNATURES.find(fits);
  return sign ? { what: sign.what, family: sign.family ?? null } : null;
}

const invalidFile = (reason: string) => invalidRequest("file", reason);
const ACCEPTED_EXTENSIONS = fileTypes.flatMap(({ extensions }) => extensions).join(", ");

/** Detects the type by content. Name and media type must agree with it. */
export async function checkFileType(file: UploadedFile, name: string): Promise<FileType> {
  if (file.size === 0) throw invalidFile("is empty");
  const handle = await open(file.path, "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const head = buffer.subarray(0, bytesRead);
    const sniffed = detectType(head);
    if (sniffed && sniffed.family === null) throw invalidFile(`is ${sniffed.what}, which is not accepted`);
    const found = await inspectContent(handle, file.size, head, sniffed?.family ?? "text");
    return mustMatchDeclaredType(found, name, file.declaredType);
  } finally {
    await handle.close();
  }
}

async function inspectContent(
  handle: FileHandle,
  size: number,
  head: Buffer,
  family: FileType["family"],
): Promise<FileType[]> {
  const offered = fileTypes.filter((kind) => kind.family === family);
  if (family === "text" && MARKUP.test(head.toString("utf8")))
    throw invalidFile("is HTML, SVG or another page with markup, which is not accepted");
  await scan(handle, size, family);
  if (family === "zip") return zipFileTypes(await readEntries(handle, size), offered);
  await mustHaveNoTrailingArchive(handle, size);
  if (family !== "text") mustNotBePolyglot(head, family);
  return offered;
}

/** Reads the whole file once, in chunks. */
async function scan(handle: FileHandle, size: number, family: FileType["family"]): Promise<void> {
  const banned = family === "pdf" ? [EICAR, ...ACTIVE_PDF] : [EICAR];
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const overlap = Math.max(...banned.map(({ length }) => length)) * ESCAPED_BYTES - 1;
  let overlapping = Buffer.alloc(0);
  const stream = handle.createReadStream({ autoClose: false, start: 0, highWaterMark: CHUNK_BYTES });
  let position = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    position += chunk.length;
    if (family === "text") mustBeText(decoder, chunk, position === size);
    const bytes = Buffer.concat([overlapping, chunk]);
    const readable = family === "pdf" ? decodePdfNames(bytes) : bytes;
    const hit = banned.find((text) => readable.includes(text, 0, "latin1"));
    if (hit === EICAR) throw invalidFile("is the test virus EICAR");
    if (hit) throw invalidFile("is a PDF with active content (a script, a program or an embedded file)");
    overlapping = bytes.subarray(-overlap);
  }
}

async function mustHaveNoTrailingArchive(handle: FileHandle, size: number): Promise<void> {
  const from = Math.max(0, size - ZIP_TAIL_BYTES);
  const { buffer } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
  if (buffer.includes(ZIP_END, 0, "latin1"))
    throw invalidFile("is two things at once: a zip archive hangs at its end");
}

/** In a PDF `/J#61vaScript` is `/JavaScript`. */
function decodePdfNames(bytes: Buffer): Buffer {
  if (!bytes.includes("#")) return bytes;
  const character = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  return ascii(bytes.toString("latin1").replace(/#([0-9a-f]{2})/gi, character));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for them
const CONTROL_CHARACTERS = /[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]/;

function mustBeText(decoder: InstanceType<typeof TextDecoder>, chunk: Buffer, isLast: boolean): void {
  let text: string;
  try {
    text = decoder.decode(chunk, { stream: !isLast });
  } catch {
    throw invalidFile(`is neither text in UTF-8 nor another accepted type: ${ACCEPTED_EXTENSIONS}`);
  }
  if (CONTROL_CHARACTERS.test(text))
    throw invalidFile(`is neither text nor another accepted type: ${ACCEPTED_EXTENSIONS}`);
}

function mustNotBePolyglot(head: Buffer, family: FileType["family"]): void {
  const text = head.toString("latin1");
  if (HIDDEN_MARKUP.test(text)) throw invalidFile("is two things at once: markup hides inside");
  if (family !== "pdf" && text.includes("%PDF-"))
    throw invalidFile("is two things at once: a PDF hides inside");
}

async function readEntries(handle: FileHandle, size: number): Promise<ZipEntry[]> {
  try {
    return await readZipEntries(handle, size);
  } catch (error) {
    if (error instanceof InvalidArchiveError) throw invalidFile(`is an archive that ${error.message}`);
    throw error;
  }
}

/** An Office document is an archive with a known entry. Its name may also declare it a plain zip. */
function zipFileTypes(entries: ZipEntry[], offered: FileType[]): FileType[] {
  const names = new Set(entries.map(({ name }) => name));
  if (names.has("META-INF/MANIFEST.MF")) throw invalidFile("is a Java program, which is not accepted");
  return offered.filter(({ entry }) => entry === undefined || names.has(entry));
}

function mustMatchDeclaredType(found: FileType[], name: string, declaredType: string | null): FileType {
  const extension = extensionOf(name);
  const kind = found.find(({ extensions }) => extensions.includes(extension));
  const expected = found.flatMap(({ extensions }) => extensions.map((one) => `.${one}`)).join(", ");
  if (!kind) {
    const claim =
      fileTypeOfExtension(extension)?.type ?? (extension ? `.${extension}` : "a name without an extension");
    throw invalidFile(`is ${found[0]?.type} by its bytes and ${claim} by its name: call it ${expected}`);
  }
  const declared = declaredType?.toLowerCase() ?? null;
  const agreed = [kind.type, ...kind.aliases, ...GENERIC_MEDIA_TYPES];
  if (declared === null || agreed.includes(declared)) return kind;
  throw invalidFile(`is ${kind.type} by its bytes and name, and was sent as ${declared.slice(0, 80)}`);
}
