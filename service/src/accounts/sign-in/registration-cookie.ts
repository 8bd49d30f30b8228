import { createHash, randomBytes } from "node:crypto";
import type { Cookie, RequestInfo } from "../../platform/http/route.ts";

const COOKIE = "__Host-registration";
const SECRET_PATTERN = /^[\w-]{43}$/;

const digestOf = (mark: string) => createHash("sha256").update(mark).digest("base64url");

/** By what a browser is known again that registers somebody. One that registers twice keeps its mark: either link will do. */
export function issueRegistrationSecret({ cookies }: RequestInfo, maxAgeSeconds: number) {
  const kept = cookies[COOKIE] ?? "";
  const value = SECRET_PATTERN.test(kept) ? kept : randomBytes(32).toString("base64url");
  return {
    cookie: { name: COOKIE, value, maxAgeSeconds } satisfies Cookie,
    secret: value,
    browser: digestOf(value),
  };
}

interface Confirmation {
  cookies: RequestInfo["cookies"];
  /** As a program returns it, which keeps no cookies. */
  registrationSecret: string | undefined;
}

/**
 * Whether who confirms a registration is who chose its password: by the browser's cookie, or by the secret that the
 * registration answered. Without it a stranger's password would open the account (pre-account hijack), whatever program redeems the link.
 */
export const isRegistrant = ({ cookies, registrationSecret }: Confirmation, browser: string): boolean =>
  [cookies[COOKIE], registrationSecret].some((secret) => digestOf(secret ?? "") === browser);
