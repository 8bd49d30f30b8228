import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { environment } from "./environment.ts";
import { CommandError, UsageError } from "./errors.ts";

/** Tokens of a login in the browser. */
export interface OAuthLogin {
  clientId: string;
  accessToken: string;
  refreshToken: string;
  /** Unix milliseconds of this machine's clock. */
  expiresAt: number;
}

/** One service and one account. */
export interface Profile {
  baseUrl: string;
  /** Whom the key belonged to at login, for `stoa profiles`. */
  email?: string;
  apiKey?: string;
  oauth?: OAuthLogin;
}

interface ProfileFile {
  /** The profile of commands without --profile. */
  current: string;
  profiles: Record<string, Profile>;
}

export const DEFAULT_PROFILE = "default";
const LOCK_TIMEOUT_MS = 15_000;
const LOCK_POLL_MS = 25;
/** Longer than a refresh of tokens takes: the command that held an older lock was killed. */
const STALE_LOCK_MS = 10_000;

const CANNOT_WRITE: ReadonlySet<string> = new Set([
  "EACCES",
  "ENOENT",
  "ENOSPC",
  "ENOTDIR",
  "EPERM",
  "EROFS",
]);

export const profilePath = (): string =>
  join(environment("XDG_CONFIG_HOME") || join(homedir(), ".config"), "stoa", "profiles.json");

export async function readProfiles(): Promise<ProfileFile> {
  let text: string;
  try {
    text = await readFile(profilePath(), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { current: DEFAULT_PROFILE, profiles: {} };
    throw toFileError(error);
  }
  try {
    const { current, profiles } = JSON.parse(text) as Partial<ProfileFile>;
    return { current: current ?? DEFAULT_PROFILE, profiles: profiles ?? {} };
  } catch {
    throw new UsageError(`${profilePath()} is not JSON`, "Mend or delete the file, then run `stoa login`.");
  }
}

/** Changes the file under a lock, so that two commands at once lose nothing. */
export async function updateProfiles<T>(change: (file: ProfileFile) => T | Promise<T>): Promise<T> {
  const path = profilePath();
  const unlock = await lock(path);
  try {
    const file = await readProfiles();
    const result = await change(file);
    const temporary = `${path}.${randomBytes(6).toString("hex")}`;
    await writeFile(temporary, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
    await rename(temporary, path);
    return result;
  } catch (error) {
    throw toFileError(error);
  } finally {
    await unlock();
  }
}

async function lock(path: string): Promise<() => Promise<void>> {
  const lockPath = `${path}.lock`;
  const giveUpAt = Date.now() + LOCK_TIMEOUT_MS;
  for (;;) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await (await open(lockPath, "wx", 0o600)).close();
      return () => rm(lockPath, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw toFileError(error);
    }
    const age = await stat(lockPath).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (age > STALE_LOCK_MS) await rm(lockPath, { force: true });
    else if (Date.now() > giveUpAt)
      throw new CommandError(
        `Another command holds ${lockPath}`,
        "Wait for it, or delete the file if none runs.",
      );
    else await sleep(LOCK_POLL_MS);
  }
}

export function toFileError(error: unknown): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  if (!code || !CANNOT_WRITE.has(code)) return error;
  return new UsageError(
    `Cannot write ${path ?? profilePath()} (${code})`,
    "Set XDG_CONFIG_HOME to a folder that you may write, or use STOA_API_KEY, which needs no file.",
  );
}
