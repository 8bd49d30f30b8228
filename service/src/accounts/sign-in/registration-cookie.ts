import { createHash, randomBytes } from "node:crypto";
import type { Cookie, RequestInfo } from "../../platform/http/route.ts";

const COOKIE = "__Host-registration";
const SECRET_PATTERN = /^[\w-]{43}$/;

const digestOf = (mark: string) => createHash("sha256").update(mark).digest("base64url");

/** Identifies the client that registers. A second registration keeps the secret, so that either link works. */
export function issueRegistrationSecret({ cookies }: RequestInfo, maxAgeSeconds: number) {
  const current = cookies[COOKIE] ?? "";
  const value = SECRET_PATTERN.test(current) ? current : randomBytes(32).toString("base64url");
  return {
    cookie: { name: COOKIE, value, maxAgeSeconds } satisfies Cookie,
    secret: value,
    browser: digestOf(value),
  };
}

interface Confirmation {
  cookies: RequestInfo["cookies"];
  /** From a client without cookies. */
  registrationSecret: string | undefined;
}

/**
 * Whether the client that confirms a registration is the one that chose its password, by cookie or by secret. Without
 * this, a stranger's password could open the account (pre-account hijack).
 */
export const isRegistrant = ({ cookies, registrationSecret }: Confirmation, browser: string): boolean =>
  [cookies[COOKIE], registrationSecret].some((secret) => digestOf(secret ?? "") === browser);
