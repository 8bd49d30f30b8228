import type { FastifyRequest } from "fastify";

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;
const endOfPath = (url: string) => (url.search(/[?#]/) + 1 || url.length + 1) - 1;

function isDecodable(path: string): boolean {
  try {
    return decode(path) !== "";
  } catch {
    return false;
  }
}

/** Most paths have nothing to decode, and each request asks several times. */
const decode = (path: string): string => (path.includes("%") ? decodeURI(path) : path);

/**
 * Makes a request target routable. A path that cannot be decoded, such as `/v1/products/%zz`, is used literally: it
 * matches no object and gets the same 404 as an unknown id.
 */
export function toRoutable(target: string): string {
  const url = target.replace(ABSOLUTE_FORM, "");
  const end = endOfPath(url);
  const path = canonicalPath(url.slice(0, end));
  return (isDecodable(path) ? path : path.replaceAll("%", "%25")) + url.slice(end);
}

/** Removes a final slash, and the base of the API before a sign-in path. */
const canonicalPath = (path: string): string =>
  path.replace(/^\/v1(?=\/api\/auth(\/|$))/, "").replace(/(?<=[^/])\/$/, "");

/** Decoded like the router does it: `/%761/products` is `/v1/products`. */
export const pathOf = ({ url }: FastifyRequest): string => decode(url.slice(0, endOfPath(url)));

/** Path and query, with what could end a link in a header escaped. */
export const targetOf = (request: FastifyRequest) => {
  const { url } = request;
  return { path: encodeURI(pathOf(request)), query: url.slice(endOfPath(url)) };
};

export const isOpenAi = (request: FastifyRequest): boolean => /^\/v1\/openai(\/|$)/.test(pathOf(request));

/** Below /v1 a caller is identified even if the path does not exist. */
export const isApi = (request: FastifyRequest): boolean => /^\/v1(\/|$)/.test(pathOf(request));

/** The one path at which programs speak MCP. */
export const isMcp = (request: FastifyRequest): boolean => pathOf(request) === "/mcp";
