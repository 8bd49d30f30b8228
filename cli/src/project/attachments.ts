import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import { kindOf } from "./files.ts";

export interface LocalAttachment {
  path: string;
  sha256: string;
}

/** Hidden files, and what editors and systems leave beside files. */
const LEFTOVER = /^\.|~$|^#.*#$|\.(swp|swo|tmp|bak|orig)$|^(thumbs\.db|desktop\.ini)$/i;
/** What the service, Windows or a shell treats specially, and what would leave the folder. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: no name may contain them
const FORBIDDEN = /[<>:"|?*\\/\x00-\x1f\x7f-\x9f]|^[. ]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Whether projects contain a file of this name. Others are neither uploaded nor removed. */
export const isAttachmentName = (name: string): boolean =>
  name !== "" && !LEFTOVER.test(name) && !FORBIDDEN.test(name);

/** The files of a folder such as `files`, by name. */
export async function listAttachments(folder: string): Promise<Map<string, LocalAttachment>> {
  const found = new Map<string, LocalAttachment>();
  if ((await kindOf(folder)) !== "folder") return found;
  for (const name of (await readdir(folder)).toSorted()) {
    if (LEFTOVER.test(name)) continue;
    const path = join(folder, name);
    if (FORBIDDEN.test(name))
      throw new UsageError(`${path} has a name that other systems do not allow`, "Rename the file.");
    if ((await kindOf(path)) === "folder")
      throw new UsageError(
        `${path} is a folder`,
        "A product has files, no folders: move the files up, or zip them.",
      );
    // As the service does; macOS stores letters and accents apart.
    found.set(name.normalize("NFC"), { path, sha256: await sha256Of(path) });
  }
  return found;
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
