import { createRoute, redirect } from "@tanstack/react-router";
import { preloadCodeEditor } from "../components/product-editor/lazy-code-editor.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { editorProductQuery, parseEditorSearch } from "../queries/product-editor.ts";
import { keysQuery, modelsQuery } from "../queries/running.ts";
import { requireAccount, rootRoute } from "./root.tsx";

const newRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/studio/products/new",
  beforeLoad: requireAccount,
  component: lazyPage(() => import("../pages/product-editor/new-product.tsx")),
});

const editorRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/studio/products/$productId",
  beforeLoad: requireAccount,
  validateSearch: parseEditorSearch,
  // Fetched anew at each visit: an editor that began with an old state would ask about changes of its own reader.
  loader: async ({ context: { queryClient }, params: { productId }, location: { search }, cause }) => {
    const { tab } = parseEditorSearch(search);
    const isVisit = cause === "enter";
    const query = editorProductQuery(productId);
    const [{ product }] = await Promise.all([
      isVisit ? queryClient.fetchQuery(query) : queryClient.ensureQueryData(query),
      queryClient.ensureQueryData(keysQuery),
      queryClient.ensureQueryData(modelsQuery("sandbox")),
      tab === undefined && preloadCodeEditor(),
    ]);
    if (product.type === "WORKFLOW")
      throw redirect({ href: `/studio/workflows/${productId}`, replace: true });
  },
  component: lazyPage(() => import("../pages/product-editor/product-editor.tsx")),
});

export const productEditorRoutes = [newRoute, editorRoute];
