import { v7 } from "uuid";
import type { Context } from "../../core/context.ts";
import type { Cookie } from "../../platform/http/route.ts";

const COOKIE = "__Host-known";
const LIFETIME_SECONDS = 180 * 86_400;
const SEAL_CONTEXT = "known-browser";

/** Distinguishes the owner's browsers from strangers who guess passwords (OWASP: device cookies). */
export const deviceCookie = ({ vault }: Context, email: string): Cookie => ({
  name: COOKIE,
  value: vault.seal(JSON.stringify([v7(), email]), SEAL_CONTEXT),
  maxAgeSeconds: LIFETIME_SECONDS,
});

/** null: the owner of this address has not signed in with this browser. */
export function readDeviceId(
  { vault }: Context,
  cookies: Record<string, string | undefined>,
  email: string,
): string | null {
  try {
    const [id, known] = JSON.parse(vault.open(cookies[COOKIE] ?? "", SEAL_CONTEXT)) as string[];
    return known === email ? id! : null;
  } catch {
    return null;
  }
}
