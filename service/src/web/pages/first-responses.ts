import type { FastifyReply, FastifyRequest } from "fastify";
import { readPageRequest } from "../../accounts/pages/page-request.ts";
import type { Context } from "../../core/context.ts";
import { GUEST_COOKIE, SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { setGuestCookie } from "../../platform/http/html.ts";
import { runAsPagePart } from "../../platform/http/page-part.ts";

/** A response of the API, as the client would have received it. */
export interface FirstResponse {
  status: number;
  etag?: string;
  /** Seconds, of a refusal. */
  retryAfter?: string;
  /** How many requests of the first view it answers; default: one. */
  uses?: number;
  // biome-ignore lint/suspicious/noExplicitAny: each path has its own shape, which the contract's tests check.
  body: any;
}

export interface FirstResponses {
  isSignedIn: boolean;
  /** By path below /v1 and query. */
  responses: Record<string, FirstResponse>;
}

/**
 * Asks the service's own API, with the cookies of the request, so that a page never shows more than its reader may see.
 * All of them count as one request in the reader's quota. `membersPaths`: for members only; a path that is named twice is used twice.
 */
export async function fetchFirstResponses(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  paths: string[],
  membersPaths: string[] = [],
): Promise<FirstResponses> {
  const { user } = await readPageRequest(ctx, request, reply);
  const cookie = user
    ? `${SESSION_COOKIE}=${request.cookies[SESSION_COOKIE]}`
    : `${GUEST_COOKIE}=${setGuestCookie(reply)}`;
  const asked = user ? [...paths, ...membersPaths] : paths;
  return { isSignedIn: user !== null, responses: await fetchAll(request, asked, cookie) };
}

async function fetchAll(
  request: FastifyRequest,
  asked: string[],
  cookie: string,
): Promise<FirstResponses["responses"]> {
  const [counted, ...others] = new Set(asked);
  if (counted === undefined) return {};
  const first = await fetchFrom(request, counted, cookie);
  const parts = await runAsPagePart(() =>
    Promise.all(
      others.map(async (path) => {
        const response = first.status === 429 ? first : await fetchFrom(request, path, cookie);
        return [path, withUses(response, path, asked)] as const;
      }),
    ),
  );
  return { [counted]: withUses(first, counted, asked), ...Object.fromEntries(parts) };
}

function withUses(response: FirstResponse, path: string, asked: string[]): FirstResponse {
  const uses = asked.filter((one) => one === path).length;
  return uses > 1 ? { ...response, uses } : response;
}

/** A response that says nothing about what was asked for: too many requests, or a fault of the service. */
export const findRefusal = ({ responses }: FirstResponses, paths: string[]): FirstResponse | undefined =>
  paths.flatMap((path) => responses[path] ?? []).find(({ status }) => status === 429 || status >= 500);

async function fetchFrom(request: FastifyRequest, path: string, cookie: string): Promise<FirstResponse> {
  const { statusCode, headers, body } = await request.server.inject({
    method: "GET",
    url: `/v1${path}`,
    remoteAddress: request.ip,
    headers: {
      cookie,
      accept: "application/json",
      // The reader's own browser gets the page; another site cannot read it.
      "sec-fetch-site": "same-origin",
      ...pick(request, "host", "user-agent", "x-forwarded-for", "x-forwarded-proto"),
    },
  });
  const { etag, "retry-after": retryAfter } = headers;
  return {
    status: statusCode,
    ...(etag !== undefined && { etag }),
    ...(retryAfter !== undefined && { retryAfter: String(retryAfter) }),
    body: JSON.parse(body),
  };
}

const pick = ({ headers }: FastifyRequest, ...names: string[]) =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
