import { toVisibleLine } from "@stoa/contract";
import { invalidRequest } from "../../core/errors.ts";
import { lastOf } from "../../core/required.ts";

const MAX_CHARACTERS = 120;
/** Characters that Windows or a shell treats specially. Browsers send a quotation mark as %22. */
const FORBIDDEN = /[<>:"|?*\\/]|%22|%0[ad]/gi;
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Makes a safe file name: no path, no invisible characters, no Windows device name. */
export function toFileName(clientName: string): string {
  const last = lastOf(clientName.normalize("NFC").split(/[\\/]/));
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

export const extensionOf = (name: string) => (/\.([^.]+)$/.exec(name)?.[1] ?? "").toLowerCase();

/** Whether two names are one file on a case-insensitive disk. */
export const isSameName = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

/** RFC 6266 and 5987: an ASCII name for old clients, the full name for others. */
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
