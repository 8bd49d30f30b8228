import type { ProductCard, ProductDetail, Review, Seller } from "@stoa/contract";
import {
  HOME_SECTIONS,
  HOME_TITLES,
  type HomeSection,
  homeProducts,
  toAddress,
} from "@stoa/web/first-requests";
import { productPath } from "@stoa/web/slug";
import { type Html, html } from "../../platform/http/html.ts";
import { type ClientPage, scriptData } from "./client-page.ts";
import type { FirstResponse } from "./first-responses.ts";

/** The public pages in plain HTML, for search engines, link previews and `curl`. */

const SITE = "Prompts and workflows that you buy once and run with your own provider key.";
const DESCRIPTION_LENGTH = 160;

type Responses = Record<string, FirstResponse>;

const listsIn = (responses: Responses): ProductCard[][] =>
  Object.entries(responses)
    .filter(([path, { status }]) => path.startsWith("/products?") && status === 200)
    .map(([, { body }]) => body.data);

export function homePage(origin: string, responses: Responses): ClientPage {
  return {
    title: "Prompts and workflows",
    description: SITE,
    head: html`${feedLink("/feed.xml", "New products")}
${openGraph({ origin, path: "/", title: "Stoa", description: SITE, type: "website" })}`,
    main: html`<main class="market" id="content">
<h1 class="display">Prompts and workflows that you run yourself.</h1>
<p>${SITE}</p>
${HOME_SECTIONS.map((sort) => homeSection(responses, sort))}
</main>`,
  };
}

function homeSection(responses: Responses, sort: HomeSection): Html | false {
  const response = responses[toAddress("/products", { ...homeProducts(sort), page: 1 })];
  const products: ProductCard[] = response?.status === 200 ? response.body.data : [];
  return products.length > 0 && section(HOME_TITLES[sort], products);
}

export function searchPage(origin: string, responses: Responses, text: string | undefined): ClientPage {
  const title = text === undefined ? "Search" : `${text} – Search`;
  return {
    title,
    description: SITE,
    // A search has endless addresses: engines follow its links, and list none of them.
    head: html`<meta name="robots" content="noindex, follow">
${openGraph({ origin, path: "/search", title, description: SITE, type: "website" })}`,
    main: html`<main class="market search" id="content">
<h1>${text === undefined ? "Products" : html`Results for “${text}”`}</h1>
${listsIn(responses).map((products) => section("Results", products))}
</main>`,
  };
}

export function productPage(origin: string, responses: Responses, product: ProductDetail): ClientPage {
  const { title } = product;
  const description = shorten(product.description || title);
  const path = `/p/${productPath(product)}`;
  const image = product.images[0] ?? `/covers/${product.type.toLowerCase()}/${product.id}.png`;
  return {
    title,
    description,
    head: html`<link rel="canonical" href="${origin}${path}">
${openGraph({ origin, path, title, description, type: "product", image })}
<script type="application/ld+json">${scriptData(jsonLd(origin, path, product))}</script>`,
    main: html`<main class="product" id="content">
<h1 class="title" dir="auto">${title}</h1>
<p>${product.type === "WORKFLOW" ? "Workflow" : "Prompt"} by ${product.author.name}, ${priceOf(product)}</p>
<div class="reading preserve-lines" dir="auto">${product.description}</div>
${bullets("What you need", product.requirements)}
${bullets("Features", product.features)}
${reviews(responses, product.id)}
</main>`,
  };
}

/** What the client shows at the top of a checkout that has not begun. Search engines do not list it. */
export const checkoutPage = (product: ProductDetail): ClientPage => ({
  title: `Buy ${product.title}`,
  head: html`<meta name="robots" content="noindex">`,
  main: html`<main class="checkout" id="content">
<p class="crumb"><a href="/p/${productPath(product)}" dir="auto">${product.title}</a></p>
<h1 class="title" dir="auto">Buy ${product.title}</h1>
<p>${priceOf(product)}</p>
</main>`,
});

export function sellerPage(origin: string, responses: Responses, seller: Seller): ClientPage {
  const { name, bio, avatar } = seller;
  const path = `/u/${seller.handle ?? seller.id}`;
  const description = shorten(bio || `Prompts and workflows by ${name}.`);
  return {
    title: name,
    description,
    head: html`<link rel="canonical" href="${origin}${path}">
${feedLink(`/feed.xml?author=${seller.handle ?? seller.id}`, `New products of ${name}`)}
${openGraph({ origin, path, title: name, description, type: "profile", image: avatar?.url })}
<script type="application/ld+json">${scriptData(profileJsonLd(origin, path, seller))}</script>`,
    main: html`<main class="market seller-page" id="content">
<h1 class="title" dir="auto">${name}</h1>
${bio && html`<p class="reading preserve-lines" dir="auto">${bio}</p>`}
${listsIn(responses).map((products) => section("Products", products))}
</main>`,
  };
}

export const missingPage: ClientPage = {
  status: 404,
  title: "Page not found",
  head: html`<meta name="robots" content="noindex">`,
  main: html`<main class="page" id="content"><h1 class="title">This page does not exist</h1></main>`,
};

const priceOf = ({ price, currency }: { price: number; currency: string }): string =>
  new Intl.NumberFormat("en", { style: "currency", currency }).format(price);

const section = (title: string, products: ProductCard[]): Html => html`<section class="beam"><h2>${title}</h2>
<ul>${products.map(
  (product) =>
    html`<li><a href="/p/${productPath(product)}"><strong dir="auto">${product.title}</strong></a>, ${priceOf(
      product,
    )}, by ${product.author.name}. <span dir="auto">${shorten(product.description)}</span></li>\n`,
)}</ul></section>`;

const bullets = (title: string, items: string[]): Html | false =>
  items.length > 0 &&
  html`<section class="beam"><h2>${title}</h2><ul class="bullets">${items.map((item) => html`<li dir="auto">${item}</li>`)}</ul></section>`;

function reviews(responses: Responses, productId: string): Html | false {
  const [, found] =
    Object.entries(responses).find(([path]) => path.startsWith(`/products/${productId}/reviews`)) ?? [];
  const items: Review[] = found?.status === 200 ? found.body.data : [];
  return (
    items.length > 0 &&
    html`<section class="beam"><h2>Reviews</h2>${items.map(
      ({ author, rating, comment }) =>
        html`<article class="review"><b>${author.name}</b>, ${rating} of 5 stars<p dir="auto">${comment}</p></article>`,
    )}</section>`
  );
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= DESCRIPTION_LENGTH) return line;
  const cut = line.slice(0, DESCRIPTION_LENGTH).toWellFormed();
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 100))}…`;
}

/** Browsers and feed readers find the feed of a page by it. */
const feedLink = (path: string, title: string): Html =>
  html`<link rel="alternate" type="application/atom+xml" href="${path}" title="${title}">`;

interface Preview {
  origin: string;
  path: string;
  title: string;
  description: string;
  type: "website" | "product" | "profile";
  image?: string | undefined;
}

/** https://ogp.me */
export function openGraph({ origin, path, title, description, type, image }: Preview): Html {
  const properties = {
    "og:site_name": "Stoa",
    "og:type": type,
    "og:title": title,
    "og:description": description,
    "og:url": origin + path,
    ...(image !== undefined && { "og:image": new URL(image, origin).href }),
  };
  return html`${Object.entries(properties).map(
    ([name, value]) => html`<meta property="${name}" content="${value}">\n`,
  )}<meta name="twitter:card" content="${image === undefined ? "summary" : "summary_large_image"}">`;
}

/** https://schema.org/Product; search engines show price and stars from it. */
const jsonLd = (origin: string, path: string, product: ProductDetail): object => ({
  "@context": "https://schema.org",
  "@type": "Product",
  name: product.title,
  description: shorten(product.description),
  url: origin + path,
  ...(product.category !== null && { category: product.category }),
  ...(product.images[0] !== undefined && { image: new URL(product.images[0], origin).href }),
  brand: { "@type": "Brand", name: product.author.name },
  offers: {
    "@type": "Offer",
    price: product.price,
    priceCurrency: product.currency,
    availability: "https://schema.org/InStock",
    url: origin + path,
  },
  ...(product.stats.reviews > 0 && {
    aggregateRating: {
      "@type": "AggregateRating",
      ratingValue: product.stats.rating,
      reviewCount: product.stats.reviews,
    },
  }),
});

/** https://schema.org/ProfilePage */
const profileJsonLd = (
  origin: string,
  path: string,
  { name, bio, avatar, links, memberSince }: Seller,
): object => ({
  "@context": "https://schema.org",
  "@type": "ProfilePage",
  dateCreated: memberSince,
  mainEntity: {
    "@type": "Person",
    name,
    url: origin + path,
    ...(bio && { description: shorten(bio) }),
    ...(avatar && { image: new URL(avatar.url, origin).href }),
    ...(links.length > 0 && { sameAs: links.map(({ url }) => url) }),
  },
});
