import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Started, start } from "../processes.ts";

const LOOK_AGAIN_MS = 50;
/** In an installation's folder: what was requested, written when it is complete. */
const INSTALLED = "installed.json";

/** Disables the peers' telemetry. */
export const QUIETLY = {
  NODE_ENV: "production",
  NODE_NO_WARNINGS: "1",
  HOST: "127.0.0.1",
  LOG_LEVEL: "warn",
  DO_NOT_TRACK: "1",
  MEDUSA_DISABLE_TELEMETRY: "true",
  VENDURE_DISABLE_TELEMETRY: "true",
};

/** Reads one of our files for a peer. */
export const readPeerFile = (peer: string, name: string): Promise<string> =>
  readFile(new URL(`./${peer}/${name}`, import.meta.url), "utf8");

/** The pinned version of a peer. */
export async function versionOf(peer: string, dependency: string): Promise<string> {
  const text = await readPeerFile(peer, "package.json");
  return (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies[dependency]!;
}

/** Copies the peer's files into a folder outside of our workspace and installs their pinned packages, unless they are there. */
export const install = (peer: string, folder: string): Promise<void> =>
  installFrom(new URL(`./${peer}/`, import.meta.url), folder);

/** The same for any folder of files with a package.json. */
export async function installFrom(source: URL, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await cp(fileURLToPath(source), folder, { recursive: true });
  const wanted = await readFile(join(folder, "package.json"), "utf8");
  const have = await readFile(join(folder, INSTALLED), "utf8").catch(() => null);
  if (have === wanted) return;
  const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  await start("npm", ["install", ...flags], { cwd: folder, env: QUIETLY }).output();
  await writeFile(join(folder, INSTALLED), wanted);
}

/** Waits until a started server is healthy. */
export async function untilHealthy(server: Started, origin: string): Promise<void> {
  let ended: Error | undefined;
  // No line matches: this only reports the end of the process.
  server.waitForLine(/^\b$/).catch((error: Error) => (ended = error));
  while (!ended) {
    const reply = await fetch(`${origin}/health`).catch(() => null);
    if (reply?.ok) return;
    await sleep(LOOK_AGAIN_MS);
  }
  throw ended;
}
