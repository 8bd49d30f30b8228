import pg from "pg";

/** `postgres://user:password@` · `host:5432,host:5432` · `/database?parameters`. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#@]*)([^#]*)$/;
const PROBE_MS = 3_000;
/** Accepted values of target_session_attrs. The service writes, so each of them means a server that accepts writes. */
const WRITABLE = ["any", "read-write", "primary"];

/** One URL for each server that a libpq URL names. Throws an Error that says what is wrong with it. */
export function splitDatabaseUrl(url: string): string[] {
  const [, start, list = "", end] = PARTS.exec(url) ?? [];
  if (start === undefined || end === undefined) throw new Error("is not a URL that begins with postgres://");
  const { path, wanted } = withoutTargetAttributes(end);
  if (wanted !== null && !WRITABLE.includes(wanted))
    throw new Error(
      `has target_session_attrs=${wanted}; the service writes: it takes ${WRITABLE.join(", ")}`,
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
function withoutTargetAttributes(end: string): { path: string; wanted: string | null } {
  const at = end.indexOf("?");
  if (at < 0) return { path: end, wanted: null };
  const parameters = end.slice(at + 1).split("&");
  const isTarget = (parameter: string) => parameter.startsWith("target_session_attrs=");
  const wanted = parameters.find(isTarget)?.split("=")[1] ?? null;
  const others = parameters.filter((parameter) => !isTarget(parameter) && parameter !== "");
  return { path: end.slice(0, at) + (others.length > 0 ? `?${others.join("&")}` : ""), wanted };
}

/** The servers of a URL for messages: without user, password and parameters. */
export const databaseHosts = (url: string): string => PARTS.exec(url)?.[2] || "localhost";

/**
 * Finds the server that accepts writes, asking them in their order, as libpq does for `target_session_attrs=read-write`.
 * pg itself connects to one server alone.
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

  /** The server was lost or became read-only: the next connection checks all servers again. */
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
  client.on("error", () => {}); // the query in hand reports it
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

/** Node reports several refused addresses of one name as an AggregateError, whose message is empty. */
export function errorMessageOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: unknown[]; code?: string };
  return message || errors?.map(errorMessageOf).join(", ") || code || String(error);
}
