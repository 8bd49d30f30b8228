import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "../errors.ts";
import { acquireLock } from "../lock.ts";
import { profilePath, toProfileError } from "../profiles.ts";

const folder = (): string => join(dirname(profilePath()), "listen");

/** Signs the events of a profile. Created once, so that a receiver's configuration stays right. */
export async function readSecret(profileName: string): Promise<string> {
  const path = join(folder(), `${encodeURIComponent(profileName)}.secret`);
  const stored = await readIfExists(path);
  if (stored !== null) return stored.trim();
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const temporary = await writeTemporary(path, `${secret}\n`);
  try {
    // Fails if another command was first. A file that exists is complete.
    await link(temporary, path);
    return secret;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw toProfileError(error, path);
    return (await readFile(path, "utf8")).trim();
  } finally {
    await rm(temporary, { force: true });
  }
}

/** What a position belongs to: another account or receiver has its own. */
export interface Route {
  baseUrl: string;
  accountId: string;
  forwardTo: string;
}

/** The last event that a receiver got. */
export class Position {
  readonly #path: string;
  readonly #route: Route;

  constructor(route: Route) {
    const name = createHash("sha256")
      .update(JSON.stringify([route.baseUrl, route.accountId, route.forwardTo]))
      .digest("hex");
    this.#path = join(folder(), `${name.slice(0, 32)}.json`);
    this.#route = route;
  }

  async read(): Promise<string | null> {
    const text = await readIfExists(this.#path);
    if (text === null) return null;
    try {
      return (JSON.parse(text) as { lastEventId?: string }).lastEventId ?? null;
    } catch {
      return null;
    }
  }

  /** Two commands at once would deliver each event twice. Returns what ends the claim; that of a killed process ends with it. */
  async claim(): Promise<() => Promise<void>> {
    const path = `${this.#path}.lock`;
    const toError = (pid: number) =>
      new UsageError(
        `Another stoa listen, process ${pid}, forwards to ${this.#route.forwardTo}`,
        `End it, or forward to another path. If that process is another program, delete ${path}.`,
      );
    await makeFolder(path);
    return acquireLock(path, 0, toError);
  }

  async write(lastEventId: string): Promise<void> {
    const text = `${JSON.stringify({ ...this.#route, lastEventId })}\n`;
    const temporary = await writeTemporary(this.#path, text);
    await rename(temporary, this.#path);
  }
}

async function readIfExists(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw toProfileError(error, path);
  }
}

async function writeTemporary(path: string, text: string): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  await makeFolder(path);
  try {
    await writeFile(temporary, text, { mode: 0o600 });
  } catch (error) {
    throw toProfileError(error, path);
  }
  return temporary;
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw toProfileError(error, path);
  }
}
