import { toVisibleLine } from "@stoa/contract";
import { invalidRequest } from "../../core/errors.ts";
import { lastOf } from "../../core/required.ts";

const MAX_CHARACTERS = 120;
/** No file system of our buyers shall stumble over it, and no shell. Browsers send a quotation mark as %22. */
const FORBIDDEN = /[<>:"|?*\\/]|%22|%0[ad]/gi;
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** The name that a file is kept under, made of what the client calls it: no path, no disguise, no device of Windows. */
export function toFileName(said: string): string {
  const last = lastOf(said.normalize("NFC").split(/[\\/]/));
  const name = toVisibleLine(last)
    .replace(FORBIDDEN, "_")
    .replace(/^[. ]+|[. ]+$/g, "");
  if (name === "") throw invalidRequest("file", 'needs a name: filename="guide.md"');
  if (WINDOWS_DEVICE.test(name))
    throw invalidRequest("file", `may not be called ${name}: Windows means a device by it`);
  if (Array.from(name).length > MAX_CHARACTERS)
    throw invalidRequest("file", `has a name of more than ${MAX_CHARACTERS} characters`);
  return name;
}

/** What comes after the last dot, in lower case; empty where there is no dot. */
export const extensionOf = (name: string) => (/\.([^.]+)$/.exec(name)?.[1] ?? "").toLowerCase();

/** Whether two names would be one file on a disk that knows no case. */
export const isSameName = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

/** RFC 6266 and 5987: plain for old readers, whole for all others. */
export function contentDisposition(name: string): string {
  const plain = name
    .normalize("NFKD")
    .replace(/[^\x20-\x7e]/g, "")
    .replace(/["\\%]/g, "_")
    .trim();
  const whole = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain || "file"}"; filename*=UTF-8''${whole}`;
}
