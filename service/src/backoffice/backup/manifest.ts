import { createHash, createHmac, hkdfSync } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { isSameDigest } from "../../core/digest.ts";
import type { MasterKey } from "../../core/vault.ts";
import { type ArchiveContents, InvalidArchive } from "./archive.ts";

const count = z.number().int().nonnegative();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const manifestShape = z.strictObject({
  madeAt: z.iso.datetime(),
  environment: z.enum(["test", "production"]),
  /** Fingerprints of the keyring; the key that sealed new values is first. */
  masterKeys: z.array(z.string()).min(1),
  migrations: z.array(z.strictObject({ name: z.string(), checksum: z.string() })),
  /** The schema version of the job queue. */
  queue: z.number().int(),
  tables: z.array(z.strictObject({ name: z.string(), columns: z.array(z.string()), rows: count, sha256 })),
  /** The next value of each sequence: a bigint as text. */
  sequences: z.array(z.strictObject({ name: z.string(), next: z.string().regex(/^-?\d+$/) })),
  files: z.strictObject({ count, sha256 }),
  /** The digest of keys.json; null without keys. */
  keys: sha256.nullable(),
  /** The result of `ledger verify` on the snapshot. */
  ledger: z.strictObject({
    ok: z.boolean(),
    transactions: count,
    entries: count,
    problems: z.array(z.string()),
  }),
});
export type Manifest = z.infer<typeof manifestShape>;

const NO_ROWS = createHash("sha256").digest("hex");

export const sha256Of = (text: string) => createHash("sha256").update(text).digest("hex");

/** Proves that the archive is unaltered: the HMAC key is derived from the master key. */
export function hmacOf(manifest: string | Buffer, { bytes }: MasterKey): string {
  const key = Buffer.from(hkdfSync("sha256", bytes, "", "stoa backup", 32));
  return createHmac("sha256", key).update(manifest).digest("hex");
}

export function mustHaveValidHmac(key: MasterKey, { manifest, hmac }: ArchiveContents): void {
  if (!isSameDigest(Buffer.from(hmac), Buffer.from(hmacOf(manifest, key))))
    throw new InvalidArchive("it was altered: its manifest is not what the master key sealed");
}

/** Returns the manifest when it matches the archive's content exactly. */
export function verifyManifest(contents: ArchiveContents): Manifest {
  const manifest = parseManifest(contents.manifest);
  const { tables, files } = contents.digests;
  const known = new Set(manifest.tables.map(({ name }) => name));
  const wrong = [
    ...manifest.tables.filter(({ name, sha256 }) => (tables.get(name) ?? NO_ROWS) !== sha256),
    ...[...tables.keys()].filter((name) => !known.has(name)).map((name) => ({ name })),
  ];
  if (wrong[0]) throw new InvalidArchive(`the rows of ${wrong[0].name} are not those that were written`);
  if (!isDeepStrictEqual(files, manifest.files)) throw new InvalidArchive("files are missing or too many");
  const keys = contents.keys === null ? null : sha256Of(contents.keys);
  if (keys !== manifest.keys) throw new InvalidArchive("its keys are not those that were written");
  return manifest;
}

function parseManifest(text: Buffer): Manifest {
  try {
    return manifestShape.parse(JSON.parse(text.toString()));
  } catch (error) {
    throw new InvalidArchive("its manifest cannot be read", { cause: error });
  }
}
