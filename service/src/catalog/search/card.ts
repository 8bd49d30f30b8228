import type { ProductStatus } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";

export interface CardFields {
  id: string;
  authorId: string;
  authorName: string;
  authorVerified: boolean;
  authorHandle: string | null;
  /** The digest of the picture. */
  authorAvatar: string | null;
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
  /** The first is the cover. */
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
  /** The score of one model as JSON text; null: not measured. */
  score: string | null;
}

/** The common fields of list item and detail, without author and counters. */
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

type AuthorFields = Pick<
  CardFields,
  "authorId" | "authorName" | "authorVerified" | "authorHandle" | "authorAvatar"
>;

/** What products show of their author. */
export interface Author {
  id: string;
  name: string;
  verified: boolean;
  handle: string | null;
  avatar: string | null;
}

export const toAuthorFields = ({ id, name, verified, handle, avatar }: Author): AuthorFields => ({
  authorId: id,
  authorName: name,
  authorVerified: verified,
  authorHandle: handle,
  authorAvatar: avatar,
});

/** Immutable: the name is the digest. */
export const avatarUrl = (hash: string | null, origin: string) =>
  hash === null ? null : { url: `${origin}/avatars/${hash}.webp` };

export const authorOf = (product: AuthorFields, origin: string) => ({
  id: toUserId(product.authorId),
  name: product.authorName,
  verified: product.authorVerified,
  handle: product.authorHandle,
  avatar: avatarUrl(product.authorAvatar, origin),
});

/** JSON escapes quotes inside texts, so no text contains this. */
export const AUTHOR_PREFIX = ',"author":';
/** The end of a card, with the author. */
export const renderAuthor = (product: AuthorFields): string =>
  `${AUTHOR_PREFIX}${JSON.stringify(authorOf(product, ""))}}`;

export const IMAGE_WIDTHS = [320, 640, 1280] as const;

/** Immutable: the name contains the digest of the widest rendition. */
export const imagePath = (hash: string, width: (typeof IMAGE_WIDTHS)[number]) =>
  `/images/${hash}-${width}.webp`;

/** Precede the paths of cover and avatar; no text contains them. The origin is inserted when the card is sent. */
const COVER_PREFIX = ',"image":"';
const AVATAR_PREFIX = ',"avatar":{"url":"';

/** The list item as JSON text, without the counters. */
export function renderCard(product: CardFields): string {
  const cover = product.images[0];
  const image = cover ? imagePath(cover.hash, IMAGE_WIDTHS[1]) : null;
  return JSON.stringify({ ...sharedFields(product), image }).slice(0, -1) + renderAuthor(product);
}

export const averageRating = (sum: number, count: number): number =>
  count === 0 ? 0 : Math.round((sum / count) * 100) / 100;

/** Inserts counters and origin, which is much cheaper than rendering the card for each request. */
export function insertCounters(
  card: string,
  { views, purchases, ratingSum, ratingCount, score }: ProductCounters,
  origin: string,
): string {
  const average = averageRating(ratingSum, ratingCount);
  const located = card
    .replace(`${COVER_PREFIX}/`, `${COVER_PREFIX}${origin}/`)
    .replace(`${AVATAR_PREFIX}/`, `${AVATAR_PREFIX}${origin}/`);
  return `${located.slice(0, -1)},"rating":{"average":${average},"count":${ratingCount}},"stats":{"views":${views},"purchases":${purchases}},"score":${score}}`;
}
