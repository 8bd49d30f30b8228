import { createRoute } from "@tanstack/react-router";
import { HOME_SECTIONS, parseSearch, parseSellerSearch, productIdOf } from "../first-requests.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  categoriesQuery,
  facetsQuery,
  homeProductsQuery,
  productQuery,
  resultsQuery,
  reviewsQuery,
  sellerProductsQuery,
  sellerQuery,
  similarQuery,
  wishlistQuery,
} from "../queries/market.ts";
import { requireAccount, rootRoute } from "./root.tsx";
import { pageNumber } from "./search-params.ts";

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  loader: ({ context: { queryClient } }) =>
    Promise.all([
      queryClient.ensureQueryData(categoriesQuery),
      ...HOME_SECTIONS.map((section) => queryClient.ensureQueryData(homeProductsQuery(section))),
    ]),
  component: lazyPage(() => import("../pages/market/home.tsx")),
});

const searchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/search",
  validateSearch: parseSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) =>
    Promise.all([
      queryClient.ensureQueryData(resultsQuery(deps)),
      queryClient.ensureQueryData(facetsQuery(deps)),
      queryClient.ensureQueryData(categoriesQuery),
    ]),
  component: lazyPage(() => import("../pages/market/search.tsx")),
});

const productRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/p/$slug",
  loader: ({ context: { queryClient }, params }) => {
    const id = productIdOf(params.slug);
    return Promise.all([
      queryClient.ensureQueryData(productQuery(id)),
      queryClient.ensureInfiniteQueryData(reviewsQuery(id)),
      queryClient.ensureQueryData(similarQuery(id)),
    ]);
  },
  component: lazyPage(() => import("../pages/market/product.tsx")),
});

const sellerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/u/$handle",
  validateSearch: parseSellerSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, params, deps }) =>
    Promise.all([
      queryClient.ensureQueryData(sellerQuery(params.handle)),
      queryClient.ensureQueryData(sellerProductsQuery(params.handle, deps)),
    ]),
  component: lazyPage(() => import("../pages/market/seller.tsx")),
});

const wishlistRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/wishlist",
  beforeLoad: requireAccount,
  validateSearch: pageNumber,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) => queryClient.ensureQueryData(wishlistQuery(deps.page)),
  component: lazyPage(() => import("../pages/market/wishlist.tsx")),
});

export const marketRoutes = [homeRoute, searchRoute, productRoute, sellerRoute, wishlistRoute] as const;
