import pg from "pg";

/** `postgres://user:password@` · `host:5432,host:5432` · `/database?parameters`. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#@]*)([^#]*)$/;
const PROBE_MS = 3_000;
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

/**
 * Finds the server that accepts writes, in the given order, like libpq's `target_session_attrs=read-write`. pg itself connects to one
 * server only.
 */
export class PrimaryFinder {
  readonly urls: string[];
  #found: Promise<string> | null = null;

  constructor(urls: string[]) {
    this.urls = urls;
  }

  find(): Promise<string> {
    this.#found ??= this.#search().catch((error) => {
      this.#found = null;
      throw error;
    });
    return this.#found;
  }

  /** Call it if the server was lost or became read-only: the next connection checks all servers again. */
  reset(): void {
    this.#found = null;
  }

  async #search(): Promise<string> {
    const refusals: string[] = [];
    for (const url of this.urls) {
      const refusal = await findWriteProblem(url);
      if (refusal === null) return url;
      refusals.push(`${databaseHosts(url)}: ${refusal}`);
    }
    // The code of PostgreSQL's read_only_sql_transaction, so that callers treat both alike.
    throw Object.assign(new Error(`No server accepts writes (${refusals.join("; ")})`), { code: "25006" });
  }
}

async function findWriteProblem(url: string): Promise<string | null> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
    application_name: "stoa primary search",
  });
  client.on("error", () => {}); // The current query reports it.
  try {
    await client.connect();
    const { rows } = await client.query("show transaction_read_only");
    return rows[0].transaction_read_only === "on" ? "is read-only" : null;
  } catch (error) {
    return errorMessageOf(error);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Node reports several refused addresses of one name as an AggregateError with an empty message. */
export function errorMessageOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: unknown[]; code?: string };
  return message || errors?.map(errorMessageOf).join(", ") || code || String(error);
}
