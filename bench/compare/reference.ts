import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { atEnd, ROOT } from "../processes.ts";

const run = promisify(execFile);
const git = async (...args: string[]) => (await run("git", args, { cwd: ROOT })).stdout.trim();
const OWN_PACKAGES = "@stoa";
/** Written by the tools that run, so that each tree has its own. */
const WRITTEN = [".cache", ".vite", ".vite-temp"];

export interface Tree {
  root: string;
  /** Such as `31eae48c`, or `work tree`. */
  name: string;
}

/** Checks a commit out into a temporary folder with the packages of this work tree. It is removed at the end of the run. */
export async function checkOut(ref: string): Promise<Tree> {
  const commit = await git("rev-parse", "--verify", "--short=8", `${ref}^{commit}`).catch(() => {
    throw new Error(`${ref} names no commit of this repository.`);
  });
  const folder = await mkdtemp(join(tmpdir(), "stoa-compare-"));
  const root = join(folder, "tree");
  atEnd(async () => {
    await git("worktree", "remove", "--force", root).catch(() => {});
    await rm(folder, { recursive: true, force: true });
    await git("worktree", "prune");
  });
  await git("worktree", "add", "--detach", root, commit);
  await givePackages(root, commit);
  await shareBuilds(root);
  return { root, name: commit };
}

async function givePackages(root: string, commit: string): Promise<void> {
  if ((await readLockedPackages(root)) === (await readLockedPackages(ROOT))) return linkPackages(root);
  console.error(
    `The lock file of ${commit} differs: its packages are installed by npm ci, which takes a minute.`,
  );
  await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: root });
}

/** Without our workspaces, whose entries repeat their package.json. */
async function readLockedPackages(root: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, object>;
  };
  return JSON.stringify(Object.entries(packages).filter(([path]) => path.includes("node_modules/")));
}

/** Links each package, but not our workspaces: those must lead to the tree's own sources. */
async function linkPackages(root: string): Promise<void> {
  const { workspaces } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    workspaces: string[];
  };
  const modules = join(root, "node_modules");
  await mkdir(join(modules, OWN_PACKAGES), { recursive: true });
  for (const name of await readdir(join(ROOT, "node_modules"))) {
    if (name === OWN_PACKAGES || WRITTEN.includes(name)) continue;
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  for (const name of await readdir(join(ROOT, "node_modules", OWN_PACKAGES))) {
    const target = await readlink(join(ROOT, "node_modules", OWN_PACKAGES, name));
    await symlink(target, join(modules, OWN_PACKAGES, name));
  }
  for (const workspace of workspaces) {
    const nested = join(ROOT, workspace, "node_modules");
    if (existsSync(nested)) await symlink(nested, join(root, workspace, "node_modules"));
  }
}

/** Builds of the web client are named by the digest of their sources: equal sources are built once. */
async function shareBuilds(root: string): Promise<void> {
  const builds = join(ROOT, "web/dist");
  await mkdir(builds, { recursive: true });
  await symlink(builds, join(root, "web/dist"));
}
