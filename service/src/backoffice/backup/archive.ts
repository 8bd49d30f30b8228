import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { Pack } from "tar-stream";
import { deferPackage } from "../../core/defer-package.ts";
import { required } from "../../core/required.ts";
import { digestIn } from "../../integrations/storage/storage.ts";

const tarStream = deferPackage<typeof import("tar-stream")>("tar-stream");

/**
 * One file, a .tar.gz:
 *
 *     format                  which format it is; the first member
 *     keys.json               the keys, encrypted with the passphrase, if one was set
 *     tables/public.users/1   rows as COPY writes them, in parts of whole rows
 *     files/<name>            a stored file; its name begins with its SHA-256
 *     manifest.json           the complete content, so that missing members are detected
 *     manifest.hmac           proves that the manifest's author had the master key; the last member
 */
const FORMAT = "stoa backup 1\n";
export const MEMBER = {
  format: "format",
  keys: "keys.json",
  manifest: "manifest.json",
  hmac: "manifest.hmac",
} as const;
const WHOLE_MEMBERS: readonly string[] = Object.values(MEMBER);

const OWNER_ONLY = 0o600;
/** The limit of members that are read into memory. The manifest is the largest, with a line per table. */
const MAX_WHOLE_BYTES = 16 * 1024 * 1024;

/** The message completes a sentence that says why the archive cannot be restored. */
export class InvalidArchive extends Error {
  override name = "ArchiveRefused";
}

/** Digests of the written or read content; both must be equal. */
export class ArchiveDigests {
  readonly #tables = new Map<string, Hash>();
  readonly #files = createHash("sha256");
  #fileCount = 0;

  table(name: string): Hash {
    const known = this.#tables.get(name);
    const hash = known ?? createHash("sha256");
    if (!known) this.#tables.set(name, hash);
    return hash;
  }

  /** By its name, which contains the digest that is checked on reading. */
  addFile(name: string): void {
    this.#files.update(`${name}\n`);
    this.#fileCount++;
  }

  /** Finishes the digests. Omits tables without rows, which have no part. */
  end() {
    const tables = [...this.#tables].map(([name, hash]) => [name, hash.digest("hex")] as const);
    return {
      tables: new Map(tables),
      files: { count: this.#fileCount, sha256: this.#files.digest("hex") },
    };
  }
}

/** Streams the archive: only the current part of a member is in memory. */
export class ArchiveWriter {
  readonly digests = new ArchiveDigests();
  readonly #pack = tarStream().pack();
  readonly #written: Promise<void>;
  readonly #madeAt: Date;

  /** `end: false` leaves the sink open, as stdout needs. */
  constructor(sink: Writable, { madeAt, end }: { madeAt: Date; end: boolean }) {
    this.#madeAt = madeAt;
    this.#written = pipeline(readBytes(this.#pack), createGzip(), sink, { end });
    this.#written.catch(() => {}); // #add and finish report it
  }

  begin(): Promise<void> {
    return this.addWhole(MEMBER.format, FORMAT);
  }

  async addWhole(name: string, text: string): Promise<void> {
    await this.#add(name, Buffer.from(text));
  }

  async addPart(table: string, number: number, rows: Buffer): Promise<void> {
    this.digests.table(table).update(rows);
    await this.#add(`tables/${table}/${number}`, rows);
  }

  async addFile(name: string, { path, size }: { path: string; size: number }): Promise<void> {
    this.digests.addFile(name);
    await this.#withSinkError(async () => {
      const entry = this.#pack.entry(this.#header(`files/${name}`, size));
      await pipeline(createReadStream(path), entry as unknown as NodeJS.WritableStream);
    });
  }

  async finish(): Promise<void> {
    this.#pack.finalize();
    await this.#written;
  }

  /** Destroys the sink, unless it must stay open. */
  async abort(): Promise<void> {
    this.#pack.destroy(new Error("given up"));
    await this.#written.catch(() => {});
  }

  /** Resolves when the archive accepts the next member. */
  async #add(name: string, bytes: Buffer): Promise<void> {
    const added = Promise.withResolvers<void>();
    await this.#withSinkError(() => {
      const entry = this.#pack.entry(this.#header(name, bytes.length), bytes, (error) =>
        error ? added.reject(error) : added.resolve(),
      );
      entry.on("error", () => {}); // the callback reports it
      return added.promise;
    });
  }

  #header = (name: string, size: number) => ({ name, size, mode: OWNER_ONLY, mtime: this.#madeAt });

  /** Reports why the sink broke instead of the error of the member that failed with it. */
  async #withSinkError(add: () => Promise<void>): Promise<void> {
    try {
      await add();
    } catch (error) {
      await this.#written;
      throw error;
    }
  }
}

async function* readBytes(packed: Pack): AsyncGenerator<Buffer> {
  yield* packed as AsyncIterable<Buffer>;
}

/** Handlers for an archive's members. A handler must read all bytes of its member. */
export interface ArchiveVisitor {
  part(table: string, rows: AsyncIterable<Buffer>): Promise<void>;
  file(name: string, bytes: AsyncIterable<Buffer>): Promise<void>;
}

export interface ArchiveContents {
  keys: string | null;
  manifest: Buffer;
  hmac: string;
  digests: ReturnType<ArchiveDigests["end"]>;
}

export const discard: ArchiveVisitor["part"] & ArchiveVisitor["file"] = async (_, bytes) => {
  for await (const _ of bytes);
};

/** Called with the bytes of the file that were read so far. */
export type OnRead = (bytes: number) => void;

/** Reads the whole archive. The caller must compare the content with the manifest. */
export async function readArchive(
  path: string,
  visitor: ArchiveVisitor,
  onRead?: OnRead,
): Promise<ArchiveContents> {
  const digests = new ArchiveDigests();
  const whole = new Map<string, Buffer>();
  for await (const { header, body } of readEntries(path, onRead)) {
    const { name } = header;
    mustBeInOrder(whole, name);
    if (WHOLE_MEMBERS.includes(name)) whole.set(name, await readWhole(header, body));
    else await visitMember(visitor, digests, name, body);
    if (name === MEMBER.format) mustBeSupportedFormat(required(whole.get(name), MEMBER.format).toString());
  }
  const [manifest, hmac] = [whole.get(MEMBER.manifest), whole.get(MEMBER.hmac)];
  if (!manifest || !hmac) throw new InvalidArchive("its end is missing");
  return {
    ...{ manifest, hmac: hmac.toString(), digests: digests.end() },
    keys: whole.get(MEMBER.keys)?.toString() ?? null,
  };
}

function mustBeInOrder(whole: Map<string, Buffer>, name: string): void {
  if (whole.size === 0 && name !== MEMBER.format) throw new InvalidArchive("it is no backup of Stoa");
  if (whole.has(MEMBER.hmac) || whole.has(name))
    throw new InvalidArchive(`it contains ${name} in the wrong place`);
}

function mustBeSupportedFormat(result: string): void {
  if (result !== FORMAT)
    throw new InvalidArchive(`its format is "${result.trim()}", and this version knows "${FORMAT.trim()}"`);
}

async function visitMember(
  visitor: ArchiveVisitor,
  digests: ArchiveDigests,
  name: string,
  body: AsyncIterable<Buffer>,
) {
  const [, table] = /^tables\/(.+)\/\d+$/.exec(name) ?? [];
  if (table) return visitor.part(table, hashStream(body, digests.table(table)));
  const [, file] = /^files\/(.+)$/.exec(name) ?? [];
  if (!file) throw new InvalidArchive(`it contains ${name}, which is not part of a backup`);
  digests.addFile(file);
  return visitor.file(file, verifyStream(body, file));
}

async function readWhole({ name, size }: { name: string; size: number }, body: AsyncIterable<Buffer>) {
  if (size > MAX_WHOLE_BYTES) throw new InvalidArchive(`its ${name} is too large`);
  return buffer(body);
}

async function* hashStream(body: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Throws at the end when the bytes do not match the digest in the name. */
async function* verifyStream(body: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  yield* hashStream(body, hash);
  if (hash.digest("hex") !== digestIn(name)) throw new InvalidArchive(`its file ${name} was altered`);
}

interface ArchiveEntry {
  header: { name: string; size: number };
  body: AsyncIterable<Buffer>;
}

async function* readEntries(path: string, onRead?: OnRead): AsyncGenerator<ArchiveEntry> {
  const entries = tarStream().extract();
  const file = createReadStream(path);
  const read = pipeline(file, createGunzip(), entries as unknown as NodeJS.WritableStream);
  read.catch(() => {}); // the entries report it
  for await (const entry of entries) {
    onRead?.(file.bytesRead);
    yield { header: entry.header, body: entry as AsyncIterable<Buffer> };
  }
  await read;
}
