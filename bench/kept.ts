import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Options } from "./options.ts";
import { atEnd } from "./processes.ts";

/** What a kept folder was made by, and what its maker has to tell; it comes last into the folder. */
const MARK = "bench-made-by";

export interface Made {
  dataDir: string;
  /** What `fill` told when it was made. */
  told: string;
}

/**
 * A data folder that `fill` fills: kept for the next run where --shops says where, else thrown away at the end of this one. One that
 * this version would fill in another way, which the bytes of `makers` and the migrations decide, is refused.
 */
export async function filledFolder(
  { shops }: Options,
  name: string,
  makers: (string | URL)[],
  fill: (dataDir: string) => Promise<string>,
): Promise<Made> {
  const dataDir = await folderFor(shops, name);
  const mark = join(dataDir, MARK);
  const maker = await digestOf(makers);
  const known = await readFile(mark, "utf8").catch(() => null);
  const [madeBy, told = ""] = known?.split("\n") ?? [];
  if (madeBy === maker) return { dataDir, told };
  if ((await readdir(dataDir)).length > 0)
    throw new Error(`${dataDir} holds another one, or half of one: delete the folder to have it made anew.`);
  const news = await fill(dataDir);
  await writeFile(mark, `${maker}\n${news}`);
  return { dataDir, told: news };
}

async function folderFor(shops: string | undefined, name: string): Promise<string> {
  if (shops) {
    const kept = join(shops, name);
    await mkdir(kept, { recursive: true });
    return kept;
  }
  const folder = await mkdtemp(join(tmpdir(), `stoa-bench-${name}-`));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Of what decides how it is filled, the tables included. */
async function digestOf(makers: (string | URL)[]): Promise<string> {
  const migrations = new URL("../service/src/platform/db/migrations/", import.meta.url);
  const tables = (await readdir(migrations)).toSorted().map((name) => new URL(name, migrations));
  const hash = createHash("sha256");
  for (const file of [...makers, ...tables]) hash.update(await readFile(file));
  return hash.digest("hex");
}
