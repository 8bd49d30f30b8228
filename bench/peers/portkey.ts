import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { atEnd, type Started, start } from "../processes.ts";
import { install, QUIETLY, versionOf } from "./installing.ts";
import { freePort } from "./ports.ts";

const PEER = "portkey";
const PACKAGE = "@portkey-ai/gateway";
const LOOK_AGAIN_MS = 50;

export interface Portkey {
  name: string;
  origin: string;
  pid: number;
}

/** Starts Portkey's gateway from a temporary folder. Returns null with a message when npm cannot install it. */
export async function startPortkey(): Promise<Portkey | null> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-portkey-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  try {
    await install(PEER, folder);
  } catch (error) {
    console.error(`Portkey's gateway is left out: it could not be installed (${(error as Error).message}).`);
    return null;
  }
  const port = await freePort();
  const server = join(folder, "node_modules", PACKAGE, "build/start-server.js");
  const gateway = start(process.execPath, [server, `--port=${port}`, "--headless"], {
    cwd: folder,
    env: QUIETLY,
    errors: "discard",
  });
  const origin = `http://127.0.0.1:${port}`;
  await untilItListens(gateway, origin);
  return { name: `Portkey ${await versionOf(PEER, PACKAGE)}`, origin, pid: gateway.pid };
}

async function untilItListens(gateway: Started, origin: string): Promise<void> {
  const ended = gateway.waitForLine(/^\b$/).then(() => {});
  const listens = async () => {
    while (!(await fetch(origin).catch(() => null))) await sleep(LOOK_AGAIN_MS);
  };
  await Promise.race([listens(), ended]);
}
