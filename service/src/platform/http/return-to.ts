const FALLBACK = "/auth/signed-in";
/** Any origin works: a URL that resolves to another one is foreign. */
const OURS = "https://ours.invalid";
/** It is stored in a sealed cookie, which is limited to 4 KB. */
const MAX_LENGTH = 2_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: browsers drop some of them, and what is left may be another address
const UNFIT = /[\\\u0000-\u001f\u007f]/;

/**
 * The path after sign-in: an own path, else the page of the signed-in account. Resolves the URL and checks it again,
 * because `/.//evil.example` starts like an own path and leads to another site.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== "string" || !/^\/(?!\/)/.test(value) || UNFIT.test(value)) return FALLBACK;
  const url = URL.parse(value, OURS);
  if (url?.origin !== OURS || url.pathname.startsWith("//")) return FALLBACK;
  const path = url.pathname + url.search + url.hash;
  return path.length <= MAX_LENGTH ? path : FALLBACK;
}
