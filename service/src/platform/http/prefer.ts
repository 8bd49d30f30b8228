import { firstOf } from "../../core/required.ts";

/** The client's preferences (RFC 7240), which the server may ignore. */
export interface PreferHeader {
  respondAsync: boolean;
  /** After this time the client prefers 202; null: not given. */
  waitSeconds: number | null;
}

const NO_PREFERENCE: PreferHeader = { respondAsync: false, waitSeconds: null };

/** The first of repeated preferences counts (RFC 7240); unknown ones are ignored. */
export function parsePrefer(header: string | string[] | undefined): PreferHeader {
  if (header === undefined) return NO_PREFERENCE;
  const preferences = new Map<string, string>();
  for (const preference of [header].flat().join(",").split(",")) {
    const [name = "", value = ""] = firstOf(preference.split(";"))
      .split("=")
      .map((part) => part.trim());
    if (!preferences.has(name.toLowerCase()))
      preferences.set(name.toLowerCase(), value.replace(/^"(.*)"$/, "$1"));
  }
  const wait = preferences.get("wait");
  return {
    respondAsync: preferences.has("respond-async"),
    waitSeconds: wait !== undefined && /^\d{1,9}$/.test(wait) ? Number(wait) : null,
  };
}
