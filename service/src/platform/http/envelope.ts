import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { type Endpoint, type ListMeta, type Meta, statusOf } from "@stoa/contract";
import type { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import type { Page, Paging } from "../db/paging.ts";
import { SESSION_COOKIE } from "./authenticate.ts";
import {
  type AcceptedResponse,
  type Cookie,
  DataResponse,
  type EventStreamResponse,
  type FileResponse,
  RawData,
  RawJson,
} from "./route.ts";

/** A finished response, as it is sent and as an Idempotency-Key stores it. */
export interface RenderedResponse<Body = string | Buffer[]> {
  status: number;
  /** Text; or parts in bytes, of which the first may be cached. */
  body: Body;
  /** Replaces the body. */
  file?: Readable;
  /** Replaces the body. */
  stream?: EventStreamResponse;
  headers: Record<string, string>;
  cookies?: Cookie[];
}

export const bodyTextOf = ({ body }: Pick<RenderedResponse, "body">): string =>
  typeof body === "string" ? body : Buffer.concat(body).toString();

/** Deletes the session cookie: on sign-out, and when the session is invalid. */
export const clearedSessionCookie: Cookie = { name: SESSION_COOKIE, value: "", maxAgeSeconds: 0 };

const toJson = (value: unknown) => (value instanceof RawJson ? value.text : JSON.stringify(value));
export const shortDigest = (...parts: (string | Buffer)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("base64url").slice(0, 27);
};
const etagOfJson = (json: string) => `"${shortDigest(json)}"`;
/** The ETag of a resource without a revision. */
export const etagOf = (data: unknown) => etagOfJson(toJson(data));

/** Allocated outside of Node's pool: one cached slice would keep the whole pool in memory. */
export function toOwnBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** A rendered page of a list. It depends on no caller, so it can be cached. */
export class RawPage {
  /** The response up to its meta. As bytes, because encoding text costs more than all other steps of sending. */
  readonly bytes: Buffer;
  readonly length: number;
  readonly info: Omit<Page<unknown>, "items">;
  /** Weak, because `meta` has the time and the id of the request. */
  readonly etag: string;
  constructor({ items, ...info }: Page<unknown>) {
    this.bytes = toOwnBytes(`{"success":true,"data":[${items.map(toJson).join(",")}],"meta":`);
    this.length = items.length;
    this.info = info;
    this.etag = `W/"${shortDigest(this.bytes, JSON.stringify(info))}"`;
  }
}

interface ListUrl {
  path: string;
  query: string;
}

/**
 * The `Link` header (RFC 8288) with first, prev, next and last; the paths keep the request's filters. An estimated total
 * has no last page: next exists while the page is full.
 */
function linkHeader(
  { path, query }: ListUrl,
  { page, limit }: Paging,
  { length, info: { total, totalIsEstimate } }: RawPage,
): string {
  const last = Math.max(1, Math.ceil(total / limit));
  const hasNext = totalIsEstimate ? length === limit : page < last;
  const filters = new URLSearchParams(query);
  filters.delete("api_key");
  filters.delete("page");
  const target = `${path}?${filters.size > 0 ? `${filters}&` : ""}page=`;
  const link = (rel: string, number: number) => `<${target}${number}>; rel="${rel}"`;
  const links = [link("first", 1)];
  if (page > 1) links.push(link("prev", totalIsEstimate ? page - 1 : Math.min(page - 1, last)));
  if (hasNext) links.push(link("next", page + 1));
  if (!totalIsEstimate) links.push(link("last", last));
  return links.join(", ");
}

export const renderAccepted = (
  { data, asPreferred }: AcceptedResponse,
  meta: Meta,
): RenderedResponse<string> => ({
  status: 202,
  body: `{"success":true,"data":${JSON.stringify(data)},"meta":${JSON.stringify(meta)}}`,
  headers: asPreferred ? { "preference-applied": "respond-async" } : {},
});

export function renderPage(
  result: Page<unknown> | RawPage,
  paging: Paging,
  target: ListUrl,
  meta: Meta,
): RenderedResponse {
  const page = result instanceof RawPage ? result : new RawPage(result);
  const listMeta: ListMeta = { ...meta, page: paging.page, limit: paging.limit, ...page.info };
  return {
    status: 200,
    body: [page.bytes, Buffer.from(`${JSON.stringify(listMeta)}}`)],
    headers: { link: linkHeader(target, paging, page), etag: page.etag },
  };
}

export function renderData(endpoint: Endpoint, result: unknown, meta: Meta): RenderedResponse {
  const answer = result instanceof DataResponse ? result : new DataResponse(result, {});
  if (answer.data instanceof RawData) return renderRawData(answer, meta);
  const data = toJson(answer.data);
  const beside = Object.entries(answer.beside).map(
    ([name, value]) => `${JSON.stringify(name)}:${toJson(value)},`,
  );
  return {
    status: answer.status ?? statusOf(endpoint),
    body: `{"success":true,${beside.join("")}"data":${data},"meta":${JSON.stringify(meta)}}`,
    cookies: answer.cookies,
    headers: answer.etag || endpoint.method === "GET" ? { etag: answer.etag ?? etagOfJson(data) } : {},
  };
}

const DATA_PREFIX = Buffer.from('{"success":true,"data":');

/** Joined, because each part costs a write of its own. */
function renderRawData({ data, etag }: DataResponse<RawData>, meta: Meta): RenderedResponse {
  const end = Buffer.from(`,"meta":${JSON.stringify(meta)}}`);
  return {
    status: 200,
    body: [Buffer.concat([DATA_PREFIX, ...data.parts, end])],
    headers: { etag: required(etag, "the ETag of rendered data") },
  };
}

/** The shape of another API: the data is the body. */
export function renderWithoutEnvelope({ method }: Endpoint, data: unknown): RenderedResponse<string> {
  const body = toJson(data);
  const headers: Record<string, string> = method === "GET" ? { etag: etagOfJson(body) } : {};
  return { status: 200, body, headers };
}

/** Not cached: the file is made for each request. */
export const renderFile = ({ name, type, bytes }: FileResponse): RenderedResponse => ({
  status: 200,
  body: "",
  file: bytes,
  headers: {
    "content-type": type,
    "content-disposition": `attachment; filename="${name}"`,
    "cache-control": "no-store",
  },
});

/** X-Accel-Buffering: nginx must not buffer the events. */
export const renderStream = (stream: EventStreamResponse): RenderedResponse => ({
  status: 200,
  body: "",
  stream,
  headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
});

/** `challenge` is for WWW-Authenticate. */
export function renderError(
  error: ApiError,
  docUrl: string,
  meta: Meta,
  challenge: string | null = null,
): RenderedResponse<string> {
  const { code, message, details, status } = error;
  const cookies = code === "INVALID_SESSION" ? [clearedSessionCookie] : [];
  const failure = { success: false, error: { code, message, ...(details && { details }), docUrl }, meta };
  return { status, body: JSON.stringify(failure), headers: headersOf(error, challenge), cookies };
}

export function headersOf({ retryAfterSeconds }: ApiError, challenge: string | null): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
  if (challenge) headers["www-authenticate"] = challenge;
  return headers;
}
