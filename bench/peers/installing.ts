import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Started, start } from "../processes.ts";

const LOOK_AGAIN_MS = 50;
/** Of the folder of an installation: what was asked for, written when it was all there. */
const INSTALLED = "installed.json";

/** No peer may tell anybody that it runs here. */
export const QUIETLY = {
  NODE_ENV: "production",
  NODE_NO_WARNINGS: "1",
  HOST: "127.0.0.1",
  LOG_LEVEL: "warn",
  DO_NOT_TRACK: "1",
  MEDUSA_DISABLE_TELEMETRY: "true",
  VENDURE_DISABLE_TELEMETRY: "true",
};

/** Which versions a peer is pinned to. */
export async function versionOf(peer: string, dependency: string): Promise<string> {
  const text = await readFile(new URL(`./${peer}/package.json`, import.meta.url), "utf8");
  return (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies[dependency]!;
}

/** Puts the peer's files into a folder outside of our workspace, and installs there what they pin, unless it is there. */
export async function install(peer: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await cp(fileURLToPath(new URL(`./${peer}/`, import.meta.url)), folder, { recursive: true });
  const wanted = await readFile(join(folder, "package.json"), "utf8");
  const have = await readFile(join(folder, INSTALLED), "utf8").catch(() => null);
  if (have === wanted) return;
  const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  await start("npm", ["install", ...flags], { cwd: folder, env: QUIETLY }).output();
  await writeFile(join(folder, INSTALLED), wanted);
}

/** Waits until a server that was just started says that it is well. */
export async function untilHealthy(server: Started, origin: string): Promise<void> {
  let ended: Error | undefined;
  // No line fits: this tells only of its end.
  server.waitForLine(/^\b$/).catch((error: Error) => (ended = error));
  while (!ended) {
    const reply = await fetch(`${origin}/health`).catch(() => null);
    if (reply?.ok) return;
    await sleep(LOOK_AGAIN_MS);
  }
  throw ended;
}
