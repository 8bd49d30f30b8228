import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { Endpoint, ListMeta, Meta } from "@stoa/contract";
import type { Page, Paging } from "../db/paging.ts";
import type { ApiError } from "../errors.ts";
import { SESSION_COOKIE } from "./authenticate.ts";
import { Answer, type Cookie, type FileAnswer, RawJson } from "./route.ts";

/** A finished answer: what goes over the wire, and what an Idempotency-Key keeps. */
export interface Rendered {
  status: number;
  body: string;
  /** In the place of the body. */
  file?: Readable;
  headers: Record<string, string>;
  cookies?: Cookie[];
}

/** Takes the session's cookie away: on leaving, and where it is worth nothing any more. */
export const noSession: Cookie = { name: SESSION_COOKIE, value: "", maxAgeSeconds: 0 };

const toJson = (value: unknown) => (value instanceof RawJson ? value.text : JSON.stringify(value));
export const digest = (text: string) => createHash("sha256").update(text).digest("base64url").slice(0, 27);
/** The ETag of what has no revision: its own digest. */
export const etagOf = (data: unknown) => `"${digest(toJson(data))}"`;

/**
 * `Link` of RFC 8288 with first, prev, next and last; the paths keep the filters of the request. Of an estimated total
 * nobody knows the last page: there is a next one as long as this one is full.
 */
function linkHeader(
  url: string,
  { page, limit }: Paging,
  { items, total, totalIsEstimate }: Page<unknown>,
): string {
  const last = Math.max(1, Math.ceil(total / limit));
  const hasNext = totalIsEstimate ? items.length === limit : page < last;
  const target = new URL(url, "http://origin");
  target.searchParams.delete("api_key");
  const link = (rel: string, number: number) => {
    target.searchParams.set("page", String(number));
    return `<${target.pathname}${target.search}>; rel="${rel}"`;
  };
  const links = [link("first", 1)];
  if (page > 1) links.push(link("prev", totalIsEstimate ? page - 1 : Math.min(page - 1, last)));
  if (hasNext) links.push(link("next", page + 1));
  if (!totalIsEstimate) links.push(link("last", last));
  return links.join(", ");
}

export function renderPage(page: Page<unknown>, paging: Paging, url: string, meta: Meta): Rendered {
  const listMeta: ListMeta = { ...meta, page: paging.page, limit: paging.limit, total: page.total };
  if (page.totalIsEstimate) listMeta.totalIsEstimate = true;
  if (page.correctedSearch) listMeta.correctedSearch = page.correctedSearch;
  if (page.ratings) listMeta.ratings = page.ratings;
  const items = page.items.map(toJson).join(",");
  return {
    status: 200,
    body: `{"success":true,"data":[${items}],"meta":${JSON.stringify(listMeta)}}`,
    headers: { link: linkHeader(url, paging, page) },
  };
}

export function renderOne(endpoint: Endpoint, result: unknown, meta: Meta): Rendered {
  const answer = result instanceof Answer ? result : new Answer(result, {});
  const data = toJson(answer.data);
  const beside = Object.entries(answer.beside).map(
    ([name, value]) => `${JSON.stringify(name)}:${toJson(value)},`,
  );
  return {
    status: answer.status ?? endpoint.status,
    body: `{"success":true,${beside.join("")}"data":${data},"meta":${JSON.stringify(meta)}}`,
    cookies: answer.cookies,
    headers: answer.etag || endpoint.method === "GET" ? { etag: answer.etag ?? etagOf(answer.data) } : {},
  };
}

/** A file is made anew for each request, and kept by no cache. */
export const renderFile = ({ name, type, bytes }: FileAnswer): Rendered => ({
  status: 200,
  body: "",
  file: bytes,
  headers: {
    "content-type": type,
    "content-disposition": `attachment; filename="${name}"`,
    "cache-control": "no-store",
  },
});

/** `challenge` is for WWW-Authenticate. */
export function renderError(
  error: ApiError,
  docUrl: string,
  meta: Meta,
  challenge: string | null = null,
): Rendered {
  const { code, message, details, status, retryAfterSeconds } = error;
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
  if (challenge) headers["www-authenticate"] = challenge;
  const cookies = code === "INVALID_SESSION" ? [noSession] : [];
  const failure = { success: false, error: { code, message, ...(details && { details }), docUrl }, meta };
  return { status, body: JSON.stringify(failure), headers, cookies };
}
