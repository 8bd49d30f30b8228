import type { LoggedRequest } from "@stoa/sdk";

export interface ErrorGroup {
  key: string;
  count: number;
  status: number;
  code: string;
  method: string;
  /** The path with … in place of ids. */
  shownPath: string;
  /** What all its paths begin with. */
  pathStart: string;
  /** null: no API key sent them. */
  apiKeyId: string | null;
  lastAt: string;
}

/** prod_01kf5v8q3xe8hb1d6c1m2k3n4p, and what stands in its place by mistake. */
const ID = /\/[a-z]{2,5}_[0-9a-z]{8,}(?=\/|$)/g;

/** Requests that failed alike: the same code of the same operation with the same key. The most frequent first. */
export function groupErrors(requests: readonly LoggedRequest[]): ErrorGroup[] {
  const groups = new Map<string, ErrorGroup>();
  for (const { status, errorCode, method, path, apiKeyId, at } of requests) {
    const code = errorCode ?? String(status);
    const shownPath = path.replace(ID, "/…");
    const key = [status, code, method, shownPath, apiKeyId].join(" ");
    const group = groups.get(key);
    if (group) {
      group.count++;
      if (at > group.lastAt) group.lastAt = at;
    } else {
      const pathStart = shownPath.split("…", 1)[0] ?? "";
      groups.set(key, { key, count: 1, status, code, method, shownPath, pathStart, apiKeyId, lastAt: at });
    }
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || b.lastAt.localeCompare(a.lastAt));
}
