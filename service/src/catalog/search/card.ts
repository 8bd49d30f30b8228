import type { ProductStatus } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";

export interface CardFields {
  id: string;
  authorId: string;
  authorName: string;
  authorVerified: boolean;
  title: string;
  description: string;
  lang: string | null;
  type: string;
  status: ProductStatus;
  category: string | null;
  priceMinor: number;
  currency: string;
  compatibility: string[];
  tags: string[];
  /** The cover first. */
  images: { hash: string }[];
  createdAt: Date;
  updatedAt: Date;
  publishedAt: Date | null;
}

export interface ProductCounters {
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
}

/** The fields that a list item and the detail have in common, but for the author and the numbers. */
export function sharedFields(product: CardFields) {
  return {
    id: toId("prod", product.id),
    title: product.title,
    description: product.description,
    lang: product.lang,
    type: product.type as "PROMPT" | "WORKFLOW",
    status: product.status,
    category: product.category,
    price: toDecimal(product.priceMinor, product.currency),
    currency: product.currency,
    compatibility: product.compatibility,
    tags: product.tags,
    createdAt: product.createdAt.toISOString(),
    updatedAt: product.updatedAt.toISOString(),
    publishedAt: product.publishedAt?.toISOString() ?? null,
  };
}

type AuthorFields = Pick<CardFields, "authorId" | "authorName" | "authorVerified">;

export const authorOf = (product: AuthorFields) => ({
  id: toUserId(product.authorId),
  name: product.authorName,
  verified: product.authorVerified,
});

/** Where the author begins in a card. In JSON a quote inside a text is escaped, so that no text can hold this. */
export const AUTHOR_PREFIX = ',"author":';
/** The end of a card, which says whose product it is. */
export const renderAuthor = (product: AuthorFields): string =>
  `${AUTHOR_PREFIX}${JSON.stringify(authorOf(product))}}`;

export const IMAGE_WIDTHS = [320, 640, 1280] as const;

/** These bytes for ever: the name holds the digest of the widest. */
export const imagePath = (hash: string, width: (typeof IMAGE_WIDTHS)[number]) =>
  `/images/${hash}-${width}.webp`;

/** What stands before a cover; no text can hold it either. Where the service is reached is added when the card is sent. */
const COVER_PREFIX = ',"image":"';

/** The list item as JSON text, all but the numbers that change all the time. */
export function renderCard(product: CardFields): string {
  const cover = product.images[0];
  const image = cover ? imagePath(cover.hash, IMAGE_WIDTHS[1]) : null;
  return JSON.stringify({ ...sharedFields(product), image }).slice(0, -1) + renderAuthor(product);
}

export const averageRating = (sum: number, count: number): number =>
  count === 0 ? 0 : Math.round((sum / count) * 100) / 100;

/** Splices the volatile numbers into a card: cheaper by far than rendering it for each request. */
export function insertCounters(
  card: string,
  { views, purchases, ratingSum, ratingCount }: ProductCounters,
  origin: string,
): string {
  const average = averageRating(ratingSum, ratingCount);
  const located = card.replace(`${COVER_PREFIX}/`, `${COVER_PREFIX}${origin}/`);
  return `${located.slice(0, -1)},"rating":{"average":${average},"count":${ratingCount}},"stats":{"views":${views},"purchases":${purchases}}}`;
}
