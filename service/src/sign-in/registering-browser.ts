import { createHash, randomBytes } from "node:crypto";
import type { Cookie, RequestFacts } from "../http/route.ts";

const COOKIE = "__Host-registration";
const MARK = /^[\w-]{43}$/;

const digestOf = (mark: string) => createHash("sha256").update(mark).digest("base64url");

/** By what a browser is known again that registers somebody. One that registers twice keeps its mark: either link will do. */
export function markBrowser({ cookies }: RequestFacts, maxAgeSeconds: number) {
  const kept = cookies[COOKIE] ?? "";
  const value = MARK.test(kept) ? kept : randomBytes(32).toString("base64url");
  return { cookie: { name: COOKIE, value, maxAgeSeconds } satisfies Cookie, browser: digestOf(value) };
}

/**
 * Whether who confirms a registration is who chose its password. Somebody else's page would take a stranger's password along
 * (pre-account hijack); a program that reads its own mailbox has no such cookie, and clicks on no stranger's link.
 */
export const hasRegistered = ({ cookies, fromPage }: RequestFacts, browser: string): boolean =>
  !fromPage || digestOf(cookies[COOKIE] ?? "") === browser;
