import { ApiError, type Restore, StoaError, UnexpectedResponseError } from "@stoa/sdk";
import { stoa } from "../../api.ts";
import { wait } from "../../lib/wait.ts";

const PART_BYTES = 8 * 1024 * 1024;
const POLL_MS = 700;
const MAX_ATTEMPTS = 5;

/** In this tab, so that a reload follows the restore that runs. */
const KEPT_ID = "stoa.restore";

/** What was refused stays so; what was not answered is asked again. */
const isFinal = (error: unknown) => error instanceof StoaError && !error.isRetryable;

/** Sends the file in parts, from where the service has it, so that a lost connection repeats one part. */
export async function sendBackup(
  file: File,
  token: string,
  onProgress: (restore: Restore) => void,
): Promise<Restore> {
  let restore = await stoa.restores.create({ token, fileName: file.name, size: file.size });
  keepId(restore.id);
  onProgress(restore);
  while (restore.received < file.size) {
    restore = await sendPart(restore, file);
    onProgress(restore);
  }
  return restore;
}

async function sendPart({ id, received }: Restore, file: File): Promise<Restore> {
  for (let attempt = 1; ; attempt++) {
    try {
      const part = new File([file.slice(received, received + PART_BYTES)], "part");
      return await stoa.restores.addPart(id, { file: part, offset: String(received) });
    } catch (error) {
      if (isFinal(error) || attempt === MAX_ATTEMPTS) throw error;
      await wait(attempt * POLL_MS);
    }
  }
}

/** After a lost answer, the service says whether the restore runs. */
export async function startRestore(id: string, passphrase: string): Promise<Restore> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await stoa.restores.start(id, passphrase === "" ? {} : { passphrase });
    } catch (error) {
      if (isFinal(error) || attempt === MAX_ATTEMPTS) throw error;
      await wait(attempt * POLL_MS);
      const restore = await readRestore(id);
      if (restore.status !== "receiving") return restore;
    }
  }
}

/** The service does not answer while it starts again. */
async function readRestore(id: string): Promise<Restore> {
  for (;;) {
    try {
      return await stoa.restores.get(id);
    } catch (error) {
      if (isFinal(error) && !isServerError(error)) throw error;
      await wait(POLL_MS);
    }
  }
}

const isServerError = (error: unknown) =>
  (error instanceof ApiError || error instanceof UnexpectedResponseError) && error.status >= 500;

/** Reads the progress until the end. */
export async function followRestore(id: string, onProgress: (restore: Restore) => void): Promise<Restore> {
  for (;;) {
    const restore = await readRestore(id);
    onProgress(restore);
    if (restore.status === "succeeded" || restore.status === "failed") return restore;
    await wait(POLL_MS);
  }
}

/** After a reload. null: none was started here, or it is forgotten. */
export async function resumeRestore(
  id: string,
  onProgress: (restore: Restore) => void,
): Promise<Restore | null> {
  try {
    const { status } = await readRestore(id);
    // The page has lost the file.
    return status === "receiving" ? null : await followRestore(id, onProgress);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

export function readKeptId(): string | null {
  try {
    return sessionStorage.getItem(KEPT_ID);
  } catch {
    return null;
  }
}

function keepId(id: string): void {
  try {
    sessionStorage.setItem(KEPT_ID, id);
  } catch {
    // The browser forbids storage: then a reload does not show the restore.
  }
}
