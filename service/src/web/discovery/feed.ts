import type { ProductCard } from "@stoa/contract";
import { productPath } from "@stoa/web/slug";
import { escapeHtml } from "../../core/escape-html.ts";

interface Feed {
  origin: string;
  /** Its own path and query. */
  path: string;
  /** The path and query of the page that shows the same. */
  page: string;
  title: string;
  products: ProductCard[];
}

// XML 1.0 forbids these even as references; titles cannot have them, descriptions of old imports might.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it removes
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const xml = (text: string): string => escapeHtml(text.toWellFormed().replace(FORBIDDEN, ""));

/** https://www.rfc-editor.org/rfc/rfc4287 (Atom) */
export const atomFeed = ({ origin, path, page, title, products }: Feed): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>${xml(title)}</title>
<id>${xml(origin + path)}</id>
<link rel="self" href="${xml(origin + path)}"/>
<link href="${xml(origin + page)}"/>
<updated>${products[0]?.publishedAt ?? "1970-01-01T00:00:00.000Z"}</updated>
${products.map((product) => entry(origin, product)).join("")}</feed>
`;

const entry = (origin: string, product: ProductCard): string => `<entry>
<title>${xml(product.title)}</title>
<id>${xml(`${origin}/p/${product.id}`)}</id>
<link href="${xml(origin + encodeURI(`/p/${productPath(product)}`))}"/>
<published>${product.publishedAt ?? product.createdAt}</published>
<updated>${product.updatedAt}</updated>
<author><name>${xml(product.author.name)}</name></author>
<summary>${xml(product.description)}</summary>
</entry>
`;
