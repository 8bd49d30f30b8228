import { productPath } from "@stoa/web/slug";
import type { Context } from "../../core/context.ts";
import { escapeHtml } from "../../core/escape-html.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { listPartStarts, listProductsFrom } from "./queries.ts";

/** https://www.sitemaps.org/protocol.html allows 50,000; smaller parts are sent sooner. */
const PRODUCTS_PER_PART = 10_000;
const KEEP_MS = 3_600_000;

/** The parts of the sitemap. Numbering a million products takes a second, which is why it happens once an hour. */
export class SitemapParts {
  readonly #ctx: Context;
  #listedAt = Number.NEGATIVE_INFINITY;
  #starts: Promise<string[]> = Promise.resolve([]);

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** The id of the first product of each part. */
  async list(): Promise<string[]> {
    const now = this.#ctx.now().getTime();
    if (now - this.#listedAt >= KEEP_MS) {
      this.#listedAt = now;
      this.#starts = listPartStarts(this.#ctx.db, PRODUCTS_PER_PART);
      this.#starts.catch(() => {
        this.#listedAt = Number.NEGATIVE_INFINITY;
      });
    }
    return (await this.#starts).map((uuid) => toId("prod", uuid));
  }

  /** null: no part begins with this product. */
  async read(start: string): Promise<string | null> {
    const uuid = toUuid("prod", start);
    if (uuid === null || !(await this.list()).includes(start)) return null;
    const products = await listProductsFrom(this.#ctx.db, uuid, PRODUCTS_PER_PART);
    const origin = this.#ctx.links.origin();
    const entries = products.map(({ productId, title, updatedAt }) => {
      const path = encodeURI(`/p/${productPath({ id: toId("prod", productId), title })}`);
      return `<url><loc>${escapeHtml(origin + path)}</loc><lastmod>${updatedAt.toISOString()}</lastmod></url>\n`;
    });
    return document("urlset", entries);
  }
}

export const sitemapIndex = (origin: string, starts: string[]): string =>
  document(
    "sitemapindex",
    starts.map((start) => `<sitemap><loc>${escapeHtml(`${origin}/sitemaps/${start}.xml`)}</loc></sitemap>\n`),
  );

const document = (element: string, entries: string[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${element} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${entries.join("")}</${element}>\n`;
