import type { Endpoint } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";
import { authenticate, mustBeAllowed } from "./authenticate.ts";
import { credentialsOf } from "./request-credentials.ts";
import type { ServerDependencies } from "./server-dependencies.ts";

/** The open streams of one credential at one endpoint. */
interface Group {
  /** Each ends one stream. */
  leave: Set<() => void>;
  timer: NodeJS.Timeout;
}

type Groups = Map<string | symbol, Group>;

const groupsOfServers = new WeakMap<ServerDependencies, Groups>();

/**
 * Checks the credential of a stream at an interval until the returned function is called, and calls `leave` when it may no longer read.
 *
 * Streams with one Authorization header share the checks: those of a thousand streams of a key would be 2,000 checks a second.
 */
export function startAuthChecks(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
  everyMs: number,
  leave: () => void,
): () => void {
  if (endpoint.access.who === "public") return () => {};
  const groups = groupsOfServers.get(server) ?? new Map();
  groupsOfServers.set(server, groups);
  const name = nameOf(endpoint, request);
  const group = groups.get(name) ?? openGroup(() => isStillAuthorized(server, endpoint, request), everyMs);
  groups.set(name, group);
  group.leave.add(leave);
  return () => {
    if (!group.leave.delete(leave) || group.leave.size > 0) return;
    clearInterval(group.timer);
    groups.delete(name);
  };
}

/** Cookies form no group, because their check also compares other headers. */
function nameOf({ method, base, path }: Endpoint, { headers, query }: FastifyRequest): string | symbol {
  const { authorization } = headers;
  if (authorization === undefined || "api_key" in (query as object)) return Symbol(path);
  return `${method} ${base}${path} ${authorization}`;
}

/** One check at a time, so that a slow database gets no more queries. */
function openGroup(ask: () => Promise<boolean>, everyMs: number): Group {
  const leave: Group["leave"] = new Set();
  let isAsking = false;
  const check = async () => {
    if (isAsking) return;
    isAsking = true;
    if (!(await ask())) for (const end of leave) end();
    isAsking = false;
  };
  return { leave, timer: setInterval(() => void check(), everyMs) };
}

/** True while the database is unavailable: no key can be revoked then. */
async function isStillAuthorized(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
): Promise<boolean> {
  try {
    const presented = credentialsOf(request, server.ctx.links.origin());
    mustBeAllowed(await authenticate(server.identify, presented), endpoint.access);
    return true;
  } catch (error) {
    return !(error instanceof ApiError);
  }
}
