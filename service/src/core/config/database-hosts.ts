/** `postgres://user:password@` · `host:5432,host:5432` · `/database?parameters`. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#@]*)([^#]*)$/;
/** Accepted values of target_session_attrs. The service writes, so each of them means a server that accepts writes. */
const WRITABLE = ["any", "read-write", "primary"];

/** Returns one URL for each server of a libpq URL. Throws an Error with the problem. */
export function splitDatabaseUrl(url: string): string[] {
  const [, start, list = "", end] = PARTS.exec(url) ?? [];
  if (start === undefined || end === undefined) throw new Error("is not a URL that begins with postgres://");
  const { path, requested } = withoutTargetAttributes(end);
  if (requested !== null && !WRITABLE.includes(requested))
    throw new Error(
      `has target_session_attrs=${requested}; the service writes: it takes ${WRITABLE.join(", ")}`,
    );
  const hosts = list.split(",");
  const urlOf = (host: string) => start + host + path;
  const wrong = hosts.find((host) => !URL.canParse(urlOf(host)));
  if (wrong !== undefined)
    throw new Error(`has the host "${wrong}"; it takes host, host:port or [IPv6]:port, separated by commas`);
  if (hosts.length > 1 && hosts.includes("")) throw new Error("has an empty host between its commas");
  return hosts.map(urlOf);
}

/** pg would treat the parameter as one of its own settings. */
function withoutTargetAttributes(end: string): { path: string; requested: string | null } {
  const at = end.indexOf("?");
  if (at < 0) return { path: end, requested: null };
  const parameters = end.slice(at + 1).split("&");
  const isTarget = (parameter: string) => parameter.startsWith("target_session_attrs=");
  const requested = parameters.find(isTarget)?.split("=")[1] ?? null;
  const others = parameters.filter((parameter) => !isTarget(parameter) && parameter !== "");
  return { path: end.slice(0, at) + (others.length > 0 ? `?${others.join("&")}` : ""), requested };
}

/** For messages: without user, password and parameters. */
export const databaseHosts = (url: string): string => PARTS.exec(url)?.[2] || "localhost";

/** Node reports several refused addresses of one name as an AggregateError with an empty message. */
export function errorMessageOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: unknown[]; code?: string };
  return message || errors?.map(errorMessageOf).join(", ") || code || String(error);
}
