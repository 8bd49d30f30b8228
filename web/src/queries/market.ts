import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import {
  CATEGORIES,
  type HomeSection,
  homeProducts,
  PRODUCT,
  type ProductSearch,
  REVIEWS,
  type SellerSearch,
  SIMILAR,
  searchFilters,
  searchResults,
  sellerProducts,
} from "../first-requests.ts";
import { wishlistPage } from "../member-requests.ts";

export const homeProductsQuery = (section: HomeSection) =>
  queryOptions({
    queryKey: ["products", "home", section],
    queryFn: ({ signal }) => stoa.products.list(homeProducts(section), { signal }).page(),
  });

export const categoriesQuery = queryOptions({
  queryKey: ["categories"],
  queryFn: ({ signal }) => stoa.categories.list(CATEGORIES, { signal }).page(),
  staleTime: 300_000,
});

export const resultsQuery = (search: ProductSearch) => {
  const query = searchResults(search);
  return queryOptions({
    queryKey: ["products", "search", query],
    queryFn: ({ signal }) => stoa.products.list(query, { signal }).page(),
  });
};

/** Products whose words begin with the text, for the palette. */
export const suggestionsQuery = (text: string) =>
  queryOptions({
    queryKey: ["products", "suggestions", text],
    queryFn: ({ signal }) => stoa.products.list({ search: text, limit: 6 }, { signal }).page(),
  });

export const facetsQuery = (search: ProductSearch) => {
  const filters = searchFilters(search);
  return queryOptions({
    queryKey: ["facets", filters],
    queryFn: async ({ signal }) => await stoa.products.facets(filters, { signal }),
  });
};

/** Without its content, so that looking at a product does not open it. */
export const productQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id],
    queryFn: async ({ signal }) => await stoa.products.get(id, PRODUCT, { signal }),
  });

/** With its content. Reading it is a buyer's first use, which ends the instant refund. */
export const openedProductQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id, "opened"],
    queryFn: async ({ signal }) => await stoa.products.get(id, {}, { signal }),
  });

export const reviewsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["product", id, "reviews"],
    queryFn: ({ signal, pageParam: page }) => stoa.reviews.list(id, { ...REVIEWS, page }, { signal }).page(),
    initialPageParam: 1,
    getNextPageParam: ({ hasMore, meta }) => (hasMore ? meta.page + 1 : undefined),
  });

export const similarQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id, "similar"],
    queryFn: ({ signal }) => stoa.products.similar(id, SIMILAR, { signal }).page(),
  });

export const sellerQuery = (handle: string) =>
  queryOptions({
    queryKey: ["seller", handle],
    queryFn: async ({ signal }) => await stoa.sellers.get(handle, { signal }),
  });

export const sellerProductsQuery = (handle: string, search: SellerSearch) => {
  const query = sellerProducts(handle, search);
  return queryOptions({
    queryKey: ["products", "seller", query],
    queryFn: ({ signal }) => stoa.products.list(query, { signal }).page(),
  });
};

/** For members. */
export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id, "versions"],
    queryFn: ({ signal }) => stoa.products.versions.list(id, { limit: 10 }, { signal }).page(),
  });

/** For members: whether the product is on their wishlist. */
export const isOnWishlistQuery = (id: string) =>
  queryOptions({
    queryKey: ["wishlist", "product", id],
    queryFn: async ({ signal }) => {
      const { data } = await stoa.wishlist.list({ productId: id, limit: 1 }, { signal }).page();
      return data.length > 0;
    },
  });

export const wishlistQuery = (page = 1) =>
  queryOptions({
    queryKey: ["wishlist", "page", page],
    queryFn: ({ signal }) => stoa.wishlist.list(wishlistPage(page), { signal }).page(),
  });
