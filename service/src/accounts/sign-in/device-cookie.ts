import { v7 } from "uuid";
import type { Context } from "../../core/context.ts";
import type { Cookie } from "../../platform/http/route.ts";

const COOKIE = "__Host-known";
const LIFETIME_SECONDS = 180 * 86_400;
const SEAL_CONTEXT = "known-browser";

/** Where somebody signed in once they can be told from strangers who guess at their password (OWASP: device cookies). */
export const deviceCookie = ({ vault }: Context, email: string): Cookie => ({
  name: COOKIE,
  value: vault.seal(JSON.stringify([v7(), email]), SEAL_CONTEXT),
  maxAgeSeconds: LIFETIME_SECONDS,
});

/** The browser's id, when the owner of the address signed in with it. */
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
