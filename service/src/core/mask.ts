export const MASK = "•••";

/** Up to the last `@`, since passwords may contain `@` and `/`. */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)\S*@/gi;
/** Parameters such as `?password=…` or `&signature=…`. */
const SECRET_PARAMETERS = /([?&][\w-]*(?:pass|secret|token|sig|key)[\w-]*=)[^&\s#]+/gi;
const EMAIL = /([^\s<>"'(),;:@/•])[^\s<>"'(),;:@/•]*@([^\s<>"'(),;:@]+)/g;

/** Replaces credentials in every address of a text, such as `postgres://user:password@`. */
export const maskSecrets = (text: string): string =>
  text.replace(URL_CREDENTIALS, `$1${MASK}@`).replace(SECRET_PARAMETERS, `$1${MASK}`);

/** `ada@example.com` becomes `a•••@example.com`. */
export const maskAddresses = (text: string): string => text.replace(EMAIL, `$1${MASK}@$2`);

/** An address without user, password and parameters. Also for libpq's addresses with several hosts, which are no URL. */
export function maskUrl(text: string): string {
  const [, scheme = "", credentials, rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?(.*@)?(.*)$/is.exec(text) ?? [];
  const [place = ""] = rest.split(/[?#]/);
  return `${scheme}${credentials === undefined ? "" : `${MASK}@`}${place}${place === rest ? "" : `?${MASK}`}`;
}
