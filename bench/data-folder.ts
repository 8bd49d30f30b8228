import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listFunctions } from "@stoa/service/platform/db/functions.ts";
import type { Options } from "./options.ts";
import { atEnd } from "./processes.ts";

/** Marks a filled folder with the digest of the code that filled it, and its note. Written last. */
const MARK = "bench-made-by";

export interface FilledFolder {
  dataDir: string;
  /** The result of `fill`. */
  note: string;
}

/**
 * A data folder that `fill` fills. With --shops it is reused, else deleted after the run. The bytes of `makers` and of
 * the migrations decide whether a folder can be reused; any other is refused.
 */
export async function filledDataFolder(
  { shops }: Options,
  name: string,
  makers: (string | URL)[],
  fill: (dataDir: string) => Promise<string>,
): Promise<FilledFolder> {
  const dataDir = await folderFor(shops, name);
  const mark = join(dataDir, MARK);
  const maker = await digestOf(makers);
  const known = await readFile(mark, "utf8").catch(() => null);
  const [madeBy, note = ""] = known?.split("\n") ?? [];
  if (madeBy === maker) return { dataDir, note };
  if ((await readdir(dataDir)).length > 0)
    throw new Error(`${dataDir} holds another one, or half of one: delete the folder to have it made anew.`);
  const news = await fill(dataDir);
  await writeFile(mark, `${maker}\n${news}`);
  return { dataDir, note: news };
}

async function folderFor(shops: string | undefined, name: string): Promise<string> {
  if (shops) {
    const folder = join(shops, name);
    await mkdir(folder, { recursive: true });
    return folder;
  }
  const folder = await mkdtemp(join(tmpdir(), `stoa-bench-${name}-`));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Covers everything that decides the content of a folder, migrations included. */
async function digestOf(makers: (string | URL)[]): Promise<string> {
  const migrations = new URL("../service/src/platform/db/migrations/", import.meta.url);
  const tables = (await readdir(migrations)).toSorted().map((name) => new URL(name, migrations));
  const hash = createHash("sha256");
  for (const file of [...makers, ...tables]) hash.update(await readFile(file));
  for (const { checksum } of await listFunctions()) hash.update(checksum);
  return hash.digest("hex");
}
