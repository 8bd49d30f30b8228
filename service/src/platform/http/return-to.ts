const FALLBACK = "/auth/signed-in";
/** Any origin will do: what leaves it is not ours. */
const OURS = "https://ours.invalid";
/** It travels in a sealed cookie, which has room for 4 KB. */
const MAX_LENGTH = 2_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: browsers drop some of them, and what is left may be another address
const UNFIT = /[\\\u0000-\u001f\u007f]/;

/**
 * Where somebody may be led after sign-in: a path of ours, else the page that tells who is signed in. What the address
 * resolves to is looked at again, because `/.//evil.example` begins like a path of ours and ends as another site.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== "string" || !/^\/(?!\/)/.test(value) || UNFIT.test(value)) return FALLBACK;
  const url = URL.parse(value, OURS);
  if (url?.origin !== OURS || url.pathname.startsWith("//")) return FALLBACK;
  const path = url.pathname + url.search + url.hash;
  return path.length <= MAX_LENGTH ? path : FALLBACK;
}
