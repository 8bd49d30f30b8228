import { firstOf } from "../../core/required.ts";

/** What a client would like, of RFC 7240: it may be done otherwise. */
export interface PreferHeader {
  respondAsync: boolean;
  /** How long an answer may take before 202 is liked better; null: not said. */
  waitSeconds: number | null;
}

/** Of a preference told twice the first counts, as the RFC asks; what is not understood is passed over. */
export function parsePrefer(header: string | string[] | undefined): PreferHeader {
  const told = new Map<string, string>();
  for (const preference of [header ?? []].flat().join(",").split(",")) {
    const [name = "", value = ""] = firstOf(preference.split(";"))
      .split("=")
      .map((part) => part.trim());
    if (!told.has(name.toLowerCase())) told.set(name.toLowerCase(), value.replace(/^"(.*)"$/, "$1"));
  }
  const wait = told.get("wait");
  return {
    respondAsync: told.has("respond-async"),
    waitSeconds: wait !== undefined && /^\d{1,9}$/.test(wait) ? Number(wait) : null,
  };
}
