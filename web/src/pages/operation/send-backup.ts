import { ApiError, type Restore } from "@stoa/sdk";
import { stoa } from "../../api.ts";

const PART_BYTES = 8 * 1024 * 1024;
const POLL_MS = 700;
const MAX_ATTEMPTS = 5;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends the file in parts, from where the service has it, so that a lost connection repeats one part. */
export async function sendBackup(
  file: File,
  token: string,
  onProgress: (restore: Restore) => void,
): Promise<Restore> {
  let restore = await stoa.restores.create({ token, fileName: file.name, size: file.size });
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
      // What was refused stays so; what did not arrive is sent again.
      if (error instanceof ApiError || attempt === MAX_ATTEMPTS) throw error;
      await sleep(attempt * POLL_MS);
    }
  }
}

/** Reads the progress until the end. The service does not answer while it starts again. */
export async function followRestore(id: string, onProgress: (restore: Restore) => void): Promise<Restore> {
  for (;;) {
    const restore = await stoa.restores.get(id).catch((error: unknown) => {
      if (error instanceof ApiError && error.status < 500) throw error;
      return null;
    });
    if (restore) onProgress(restore);
    if (restore?.status === "succeeded" || restore?.status === "failed") return restore;
    await sleep(POLL_MS);
  }
}
