import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createInflateRaw } from "node:zlib";

/** As listed in the central directory. */
export interface ZipEntry {
  name: string;
  size: number;
}

const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
/** Follows an entry whose size was unknown when it was written. */
const DESCRIPTOR_BYTES = 24;
const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 0x1;
/** Marks a size or offset in a zip64 field, which no archive of this size needs. */
const ZIP64 = 0xffffffff;
const SYMLINK = 0o120000;
/** A flag: the sizes follow the entry and are not in its local header. */
const HAS_DATA_DESCRIPTOR = 0x8;
/** The extra field with another name for the entry (Info-ZIP, 7-Zip, WinRAR). */
const UNICODE_PATH_FIELD = 0x7075;
const UNICODE_PATH_OFFSET = 5;

const MIB = 1024 * 1024;
const READ_CHUNK_BYTES = 64 * 1024;
const INFLATE_CHUNK_BYTES = 256 * 1024;
const MAX_ENTRIES = 2_000;
const MAX_UNPACKED_BYTES = 500 * MIB;
/** Applies from RATIO_FROM_BYTES on, since small text archives compress well. */
const MAX_RATIO = 100;
const RATIO_FROM_BYTES = 10 * MIB;

/** Nested archives hide their unpacked size. */
const NESTED_ARCHIVE = /\.(zip|jar|war|apk|7z|rar|gz|tgz|bz2|tbz2|xz|txz|zst|lz|lzma|cab|iso|dmg|tar)$/i;
const EXECUTABLE =
  /\.(exe|dll|scr|com|pif|cpl|msi|msp|bat|cmd|vbs|vbe|jse|wsf|wsh|hta|lnk|reg|app|deb|rpm)$/i;
/** On Windows, another name for the file's bytes. */
const NTFS_STREAM = /::\$data$/i;
const MACROS = /(^|\/)(vbaproject\.bin|macrosheets\/)/i;

/** The message completes "the archive …" and is shown to the client. */
export class InvalidArchiveError extends Error {}

/**
 * Reads the entries and checks their unpacked sizes without storing anything. Rejects every form that two programs could
 * read differently, such as gaps between entries.
 */
export async function readZipEntries(file: FileHandle, size: number): Promise<ZipEntry[]> {
  const { count, offset, length } = await findEnd(file, size);
  const directory = await read(file, offset, length);
  const entries: DirectoryEntry[] = [];
  let at = 0;
  for (let index = 0; index < count; index++) {
    const entry = entryAt(directory, at);
    entries.push(entry);
    at += entry.length;
  }
  if (at !== length) throw new InvalidArchiveError("has a broken list of entries");
  const placed = await locateEntries(file, entries, offset);
  mustBeSafe(entries, size);
  for (const entry of placed) await mustInflateToListedSize(file, entry);
  return entries;
}

interface DirectoryEntry extends ZipEntry {
  method: number;
  packed: number;
  offset: number;
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  if (bytesRead !== length) throw new InvalidArchiveError("is cut off");
  return buffer;
}

/** A read stream would close the file when its reader stops early, and leaves a listener on it for each entry. */
async function* readChunks(file: FileHandle, position: number, length: number): AsyncGenerator<Buffer> {
  const end = position + length;
  for (let at = position; at < end; at += READ_CHUNK_BYTES)
    yield await read(file, at, Math.min(READ_CHUNK_BYTES, end - at));
}

async function findEnd(file: FileHandle, size: number) {
  const from = Math.max(0, size - END_BYTES - MAX_COMMENT_BYTES);
  const tail = await read(file, from, size - from);
  // The comment must end at the last byte, so that nothing follows the archive.
  let at = tail.length - END_BYTES;
  while (
    at >= 0 &&
    !(tail.readUInt32LE(at) === END && at + END_BYTES + tail.readUInt16LE(at + 20) === tail.length)
  )
    at--;
  if (at < 0) throw new InvalidArchiveError("is cut off, or has something after its end");
  const [disk, count, total] = [
    tail.readUInt16LE(at + 4),
    tail.readUInt16LE(at + 8),
    tail.readUInt16LE(at + 10),
  ];
  const [length, offset] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)];
  if (disk !== 0 || count !== total) throw new InvalidArchiveError("is a part of several");
  if (offset + length !== from + at)
    throw new InvalidArchiveError("has something before its beginning or inside");
  if (count > MAX_ENTRIES) throw new InvalidArchiveError(`has ${count} entries, more than ${MAX_ENTRIES}`);
  if (count === 0) throw new InvalidArchiveError("is empty");
  return { count, offset, length };
}

function entryAt(directory: Buffer, at: number) {
  if (at + ENTRY_BYTES > directory.length || directory.readUInt32LE(at) !== ENTRY)
    throw new InvalidArchiveError("has a broken list of entries");
  const [nameLength, extra, comment] = [28, 30, 32].map((part) => directory.readUInt16LE(at + part)) as [
    number,
    number,
    number,
  ];
  const length = ENTRY_BYTES + nameLength + extra + comment;
  if (at + length > directory.length) throw new InvalidArchiveError("has a broken list of entries");
  const [packed, size, offset] = [20, 24, 42].map((part) => directory.readUInt32LE(at + part)) as [
    number,
    number,
    number,
  ];
  if (packed === ZIP64 || size === ZIP64 || offset === ZIP64) throw new InvalidArchiveError("is a zip64");
  if (directory.readUInt16LE(at + 8) & ENCRYPTED)
    throw new InvalidArchiveError("is encrypted and cannot be checked");
  const method = directory.readUInt16LE(at + 10);
  if (method !== STORED && method !== DEFLATED)
    throw new InvalidArchiveError(`is packed by the method ${method}`);
  if (method === STORED && packed !== size)
    throw new InvalidArchiveError("has sizes that contradict each other");
  const mode = directory.readUInt32LE(at + 38) >>> 16;
  if ((mode & 0o170000) === SYMLINK) throw new InvalidArchiveError("has a link to somewhere else");
  const fieldsAt = at + ENTRY_BYTES + nameLength;
  const name = directory.toString("utf8", at + ENTRY_BYTES, fieldsAt);
  mustHaveOneName(name, directory.subarray(fieldsAt, fieldsAt + extra));
  return { name, size, method, packed, offset, length };
}

function mustHaveOneName(name: string, extra: Buffer): void {
  for (let at = 0; at + 4 <= extra.length; ) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    const other = extra.toString("utf8", at + 4 + UNICODE_PATH_OFFSET, end);
    if (extra.readUInt16LE(at) === UNICODE_PATH_FIELD && other !== name)
      throw new InvalidArchiveError("has an entry under two names");
    at = end;
  }
}

/** Entries must be adjacent from the first byte on. Overlapping entries let small bombs unpack to terabytes. */
async function locateEntries(
  file: FileHandle,
  entries: DirectoryEntry[],
  directoryAt: number,
): Promise<LocatedEntry[]> {
  const placed: LocatedEntry[] = [];
  let end = 0;
  for (const entry of entries.toSorted((a, b) => a.offset - b.offset)) {
    mustBeAdjacent(end, entry.offset, end === 0 ? 0 : DESCRIPTOR_BYTES);
    const local = await read(file, entry.offset, LOCAL_BYTES);
    if (local.readUInt32LE(0) !== LOCAL) throw new InvalidArchiveError("has a broken entry");
    mustMatchLocalHeader(entry, local);
    const nameLength = local.readUInt16LE(26);
    const extra = local.readUInt16LE(28);
    const names = await read(file, entry.offset + LOCAL_BYTES, nameLength + extra);
    if (names.toString("utf8", 0, nameLength) !== entry.name)
      throw new InvalidArchiveError("has an entry under two names");
    mustHaveOneName(entry.name, names.subarray(nameLength));
    const dataAt = entry.offset + LOCAL_BYTES + nameLength + extra;
    placed.push({ ...entry, dataAt });
    end = dataAt + entry.packed;
  }
  mustBeAdjacent(end, directoryAt, DESCRIPTOR_BYTES);
  return placed;
}

interface LocatedEntry extends DirectoryEntry {
  dataAt: number;
}

const sizeMismatch = () =>
  new InvalidArchiveError("has an entry that does not unpack to the size that it names");

/** Headers may contain false sizes, which the limits rely on. Inflates up to one byte more than the listed size. */
async function mustInflateToListedSize(
  file: FileHandle,
  { method, packed, size, dataAt }: LocatedEntry,
): Promise<void> {
  if (method === STORED) return;
  if (packed === 0) throw sizeMismatch();
  let unpacked = 0;
  try {
    await pipeline(
      readChunks(file, dataAt, packed),
      createInflateRaw({ chunkSize: INFLATE_CHUNK_BYTES }),
      async (chunks) => {
        for await (const chunk of chunks as AsyncIterable<Buffer>) {
          unpacked += chunk.length;
          if (unpacked > size) throw sizeMismatch();
        }
      },
    );
  } catch (error) {
    if (error instanceof InvalidArchiveError) throw error;
    if ((error as { code?: string }).code?.startsWith("Z_")) throw sizeMismatch();
    throw error;
  }
  if (unpacked !== size) throw sizeMismatch();
}

/** Some programs read local headers only and ignore the central directory. */
function mustMatchLocalHeader({ method, packed, size }: DirectoryEntry, local: Buffer): void {
  const hasSizes = (local.readUInt16LE(6) & HAS_DATA_DESCRIPTOR) === 0;
  const isOther =
    local.readUInt16LE(8) !== method ||
    (hasSizes && (local.readUInt32LE(18) !== packed || local.readUInt32LE(22) !== size));
  if (isOther) throw new InvalidArchiveError("has an entry that contradicts the list of entries");
}

function mustBeAdjacent(end: number, next: number, gap: number): void {
  if (next < end) throw new InvalidArchiveError("has entries inside each other");
  if (next > end + gap) throw new InvalidArchiveError("has something before or between its entries");
}

function mustBeSafe(entries: ZipEntry[], packedBytes: number): void {
  const unpacked = entries.reduce((sum, { size }) => sum + size, 0);
  if (unpacked > MAX_UNPACKED_BYTES)
    throw new InvalidArchiveError(`unpacks to more than ${MAX_UNPACKED_BYTES / MIB} MiB`);
  if (unpacked > RATIO_FROM_BYTES && unpacked / packedBytes > MAX_RATIO)
    throw new InvalidArchiveError(`unpacks to more than ${MAX_RATIO} times its size`);
  const names = new Set<string>();
  for (const { name } of entries) {
    const why = nameProblem(name);
    if (why) throw new InvalidArchiveError(`${why}: ${printableName(name)}`);
    const key = name.normalize("NFC").toLowerCase();
    if (names.has(key)) throw new InvalidArchiveError(`has two entries of one name: ${printableName(name)}`);
    names.add(key);
  }
}

function nameProblem(name: string): string | null {
  if (name === "" || name.includes("\0") || name.includes("\ufffd"))
    return "has an entry whose name is no text";
  if (/^[\\/]|^[a-z]:|\\/i.test(name)) return "has an entry with an absolute path or a backslash";
  if (name.split("/").includes("..")) return "has an entry that would unpack outside of its folder";
  const windowsName = toWindowsName(name);
  if (NESTED_ARCHIVE.test(windowsName)) return "has a nested archive, which cannot be checked";
  if (EXECUTABLE.test(windowsName)) return "has a program inside";
  if (MACROS.test(name)) return "has macros inside";
  return null;
}

/** Strips trailing dots and blanks. A loop, since a regular expression would be quadratic here. */
function toWindowsName(name: string): string {
  let end = name.length;
  while (end > 0 && ". ".includes(name.charAt(end - 1))) end--;
  return name.slice(0, end).replace(NTFS_STREAM, "");
}

/** Entry names go into the response: shortened, without control characters. */
const printableName = (name: string) => name.replace(/[\p{C}]/gu, "?").slice(0, 80);
