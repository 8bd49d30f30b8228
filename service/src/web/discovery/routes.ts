import { coverSvg } from "@stoa/contract/cover";
import { parseSearch, searchFilters, toAddress } from "@stoa/web/first-requests";
import { cutText } from "@stoa/web/slug";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { paintPreview } from "../../catalog/files/image-encoder.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { RateLimits } from "../../platform/http/rate-limit.ts";
import { type FirstResponse, fetchFirstResponses, findRefusal } from "../pages/first-responses.ts";
import { atomFeed } from "./feed.ts";
import { SitemapParts, sitemapIndex } from "./sitemap.ts";

const FEED_LENGTH = 50;
const HOUR_SECONDS = 3_600;
const YEAR_SECONDS = 31_536_000;
const COVER_NAME = /^(prod_[0-9a-hjkmnp-tv-z]{26})\.png$/;
/** Pages of members, and what has no content of its own. */
const NOT_FOR_CRAWLERS = [
  "/account",
  "/auth",
  "/checkout",
  "/library",
  "/orders",
  "/run",
  "/settings",
  "/v1",
  "/wishlist",
];

/** What search engines and feed readers ask for. */
export function addDiscoveryPages(app: FastifyInstance, ctx: Context, limits: RateLimits): void {
  const parts = new SitemapParts(ctx);
  app.get("/robots.txt", (_request, reply) => {
    const rules = NOT_FOR_CRAWLERS.map((path) => `Disallow: ${path}\n`).join("");
    const text = `User-agent: *\n${rules}\nSitemap: ${ctx.links.origin()}/sitemap.xml\n`;
    return send(reply, "text/plain; charset=utf-8", text);
  });
  app.get("/sitemap.xml", async (_request, reply) =>
    send(reply, "application/xml; charset=utf-8", sitemapIndex(ctx.links.origin(), await parts.list())),
  );
  app.get("/sitemaps/:start.xml", async (request, reply) => {
    // Ten thousand products are read for it.
    const { refusal } = await limits.count({ kind: "guest", guestId: "" }, request.ip);
    if (refusal) throw refusal;
    const part = await parts.read((request.params as { start: string }).start);
    if (part === null) throw new ApiError("NOT_FOUND");
    return send(reply, "application/xml; charset=utf-8", part);
  });
  // It follows from the id, so that no product is looked up, and it never changes.
  app.get<{ Params: { type: string; name: string } }>("/covers/:type/:name", async (request, reply) => {
    const { refusal } = await limits.count({ kind: "guest", guestId: "" }, request.ip);
    if (refusal) throw refusal;
    const { type, name } = request.params;
    const [, id] = COVER_NAME.exec(name) ?? [];
    if (id === undefined || (type !== "prompt" && type !== "workflow")) throw new ApiError("NOT_FOUND");
    const png = await paintPreview(coverSvg(id, type === "prompt" ? "PROMPT" : "WORKFLOW"));
    return reply
      .header("cache-control", `public, max-age=${YEAR_SECONDS}, immutable`)
      .type("image/png")
      .send(png);
  });
  app.get("/feed.xml", (request, reply) => sendFeed(ctx, request, reply));
}

/** The newest products of a search: the same parameters as the search page, and `author` for one seller. */
async function sendFeed(ctx: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = request.query as Record<string, unknown>;
  const search = parseSearch(query);
  const author = typeof query["author"] === "string" ? cutText(query["author"], 100) : undefined;
  const filters = { ...searchFilters(search), author };
  const products = toAddress("/products", {
    ...filters,
    sort: "publishedAt",
    order: "desc",
    limit: FEED_LENGTH,
  });
  const first = await fetchFirstResponses(ctx, request, reply, [products]);
  const refusal = findRefusal(first, [products]);
  if (refusal) throw toError(refusal);
  const found = first.responses[products];
  if (found?.status !== 200) throw new ApiError("NOT_FOUND");
  const { q, ...others } = search;
  const feed = atomFeed({
    origin: ctx.links.origin(),
    path: toAddress("/feed.xml", { q, ...others, author }),
    page: author === undefined ? toAddress("/search", { q, ...others }) : `/u/${encodeURIComponent(author)}`,
    title: q === undefined ? "New on Stoa" : `New on Stoa: ${q}`,
    products: found.body.data,
  });
  // A new visitor gets a cookie with it, which no shared cache may keep.
  return send(reply, "application/atom+xml; charset=utf-8", feed, "private");
}

/** Feed readers give up a feed after 404, and come again after other errors. */
const toError = ({ status, retryAfter, body: { error } }: FirstResponse): ApiError =>
  status === 429
    ? new ApiError("RATE_LIMIT_EXCEEDED", error.message, error.details, Number(retryAfter))
    : new ApiError("SERVICE_UNAVAILABLE");

const send = (reply: FastifyReply, type: string, text: string, scope = "public"): FastifyReply =>
  reply.header("cache-control", `${scope}, max-age=${HOUR_SECONDS}`).type(type).send(text);
