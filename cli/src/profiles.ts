import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { environment } from "./environment.ts";
import { UsageError } from "./errors.ts";
import { toFileError } from "./file-errors.ts";
import { acquireLock } from "./lock.ts";

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

export interface ProfileFile {
  /** The profile of commands without --profile. */
  current: string;
  profiles: Record<string, Profile>;
}

export const DEFAULT_PROFILE = "default";
/** Longer than a refresh of tokens takes. */
const LOCK_WAIT_MS = 15_000;
/** Room for new tokens, so that a full disk is found before the old ones are used up. */
const ROOM = " ".repeat(4_096);
/** Names are keys of an object and words of a command line. */
const PROFILE_NAME = /^[a-z0-9][\w.-]{0,63}$/i;

export const profilePath = (): string =>
  join(environment("XDG_CONFIG_HOME") || join(homedir(), ".config"), "stoa", "profiles.json");

export async function readProfiles(): Promise<ProfileFile> {
  let text: string;
  try {
    text = await readFile(profilePath(), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { current: DEFAULT_PROFILE, profiles: {} };
    throw toProfileError(error);
  }
  try {
    const { current, profiles } = JSON.parse(text) as Partial<ProfileFile>;
    return { current: current ?? DEFAULT_PROFILE, profiles: profiles ?? {} };
  } catch {
    throw new UsageError(`${profilePath()} is not JSON`, "Repair or delete the file, then run `stoa login`.");
  }
}

export function mustBeProfileName(name: string): void {
  if (!PROFILE_NAME.test(name))
    throw new UsageError(
      `${JSON.stringify(name)} is no name of a profile`,
      "Use letters, digits, dots, dashes and underscores, such as staging.",
    );
}

export const findProfile = ({ profiles }: ProfileFile, name: string): Profile | undefined =>
  Object.hasOwn(profiles, name) ? profiles[name] : undefined;

/** Changes the file under a lock, so that two commands at once lose nothing. */
export async function updateProfiles<T>(change: (file: ProfileFile) => T | Promise<T>): Promise<T> {
  const path = profilePath();
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const release = await acquireLock(`${path}.lock`, LOCK_WAIT_MS);
    try {
      const file = await readProfiles();
      const result = await withRoom(temporary, toText(file), async (write) => {
        const changed = await change(file);
        await write(toText(file));
        return changed;
      });
      await rename(temporary, path);
      return result;
    } finally {
      await rm(temporary, { force: true });
      await release();
    }
  } catch (error) {
    throw toProfileError(error);
  }
}

/** Takes the space of a new file before the work, which then replaces its text. */
async function withRoom<T>(
  path: string,
  text: string,
  work: (write: (text: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(text + ROOM);
    await handle.sync();
    return await work(async (changed) => {
      await handle.write(changed, 0);
      await handle.truncate(Buffer.byteLength(changed));
      await handle.sync();
    });
  } finally {
    await handle.close();
  }
}

const toText = (file: ProfileFile): string => `${JSON.stringify(file, null, 2)}\n`;

/** For files beside the profiles too. */
export const toProfileError = (error: unknown, path = profilePath()): unknown =>
  toFileError(
    error,
    path,
    "Set XDG_CONFIG_HOME to a folder that you may write, or use STOA_API_KEY, which needs no file.",
  );
