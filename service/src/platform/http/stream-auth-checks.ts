import type { Endpoint } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { authenticate, mustBeAllowed, type RequestCredentials } from "./authenticate.ts";
import { credentialsOf } from "./request-credentials.ts";
import type { ServerDependencies } from "./server-dependencies.ts";

/** Without the request and `leave`, because a group outlives its first stream. */
interface AuthCheck {
  server: ServerDependencies;
  endpoint: Endpoint;
  presented: RequestCredentials;
}

/** The open streams of one credential at one endpoint. */
interface Group {
  /** Each ends one stream. */
  leaveCallbacks: Set<() => void>;
  timer: NodeJS.Timeout;
}

type Groups = Map<string | symbol, Group>;

const groupsOfServers = new WeakMap<ServerDependencies, Groups>();

interface AuthCheckOptions {
  server: ServerDependencies;
  endpoint: Endpoint;
  request: FastifyRequest;
  intervalMs: number;
  leave: () => void;
}

/**
 * Checks the credential of a stream at an interval until the returned function is called. Calls `leave` when the credential may no
 * longer read.
 *
 * Streams with one Authorization header share the checks: those of a thousand streams of a key would be 2,000 checks a second.
 */
export function startAuthChecks({
  server,
  endpoint,
  request,
  intervalMs,
  leave,
}: AuthCheckOptions): () => void {
  if (endpoint.access.who === "public") return () => {};
  const groups = groupsOfServers.get(server) ?? new Map();
  groupsOfServers.set(server, groups);
  const presented = credentialsOf(request, server.ctx.links.origin());
  const key = groupKeyOf(endpoint, presented);
  const group = groups.get(key) ?? openGroup({ server, endpoint, presented }, intervalMs);
  groups.set(key, group);
  group.leaveCallbacks.add(leave);
  return () => {
    if (!group.leaveCallbacks.delete(leave) || group.leaveCallbacks.size > 0) return;
    clearInterval(group.timer);
    groups.delete(key);
  };
}

/**
 * A stream with cookies or `api_key` gets a group of its own: cookies are checked with other headers, and the key is not in the
 * header. Other keys are digests, so that no map of the process lists credentials.
 */
function groupKeyOf(
  { method, base, path }: Endpoint,
  { authorization, apiKeyInQuery }: RequestCredentials,
): string | symbol {
  if (authorization === undefined || apiKeyInQuery !== undefined) return Symbol(path);
  return digestOf(JSON.stringify([method, base, path, authorization])).toString("base64");
}

/** One check at a time, so that a slow database gets no more queries. */
function openGroup(authCheck: AuthCheck, intervalMs: number): Group {
  const leaveCallbacks: Group["leaveCallbacks"] = new Set();
  let isChecking = false;
  const check = async () => {
    if (isChecking) return;
    isChecking = true;
    if (!(await isAuthorized(authCheck))) for (const leave of leaveCallbacks) leave();
    isChecking = false;
  };
  return { leaveCallbacks, timer: setInterval(() => void check(), intervalMs) };
}

/** True while the database is unavailable: no key can be revoked then. */
async function isAuthorized({ server, endpoint, presented }: AuthCheck): Promise<boolean> {
  try {
    mustBeAllowed(await authenticate(server.identify, presented), endpoint.access);
    return true;
  } catch (error) {
    return !(error instanceof ApiError);
  }
}
