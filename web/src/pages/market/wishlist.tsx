import type { ProductCard as Product } from "@stoa/sdk";
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Pager } from "../../components/pager.tsx";
import { ProductRow } from "../../components/product-card.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { showError, showToast } from "../../lib/toasts.ts";
import { useTitle } from "../../lib/use-title.ts";
import { wishlistQuery } from "../../queries/market.ts";

const route = getRouteApi("/wishlist");

export default function Wishlist() {
  const { page } = route.useSearch();
  const { data } = useSuspenseQuery(wishlistQuery(page));
  const remove = useRemoval();
  useTitle("Wishlist");
  return (
    <main className="market" id="content">
      <div className="row between wrap">
        <h1 className="title">Wishlist</h1>
        <ShowAsCode
          curl={`curl "${location.origin}/v1/wishlist" \\\n  -H "Authorization: Bearer $STOA_API_KEY"`}
          sdk="for await (const { product } of stoa.wishlist.list()) console.log(product.title);"
        />
      </div>
      <section className="beam rows">
        {data.data.length === 0 ? (
          <EmptyState
            title="Nothing here yet"
            action={
              <Link to="/search" className="btn">
                Search products
              </Link>
            }
          >
            The heart on a product's page adds it here.
          </EmptyState>
        ) : (
          data.data.map(({ product }) => (
            <div className="row wish" key={product.id}>
              <ProductRow product={product} />
              <button type="button" className="btn s" onClick={() => remove(product)}>
                Remove
              </button>
            </div>
          ))
        )}
      </section>
      <Pager page={page} hasMore={data.hasMore} />
    </main>
  );
}

/** Removes at once, and offers to take it back. */
function useRemoval() {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: ["wishlist"] });
  const add = useMutation({
    mutationFn: (product: Product) => stoa.wishlist.add(product.id),
    onError: (error) => showError("The product was not added again", error),
    onSettled: refresh,
  });
  const { mutate } = useMutation({
    mutationFn: (product: Product) => stoa.wishlist.remove(product.id),
    onSuccess: (_, product) =>
      showToast(`${product.title} is no longer on your wishlist.`, { undo: () => add.mutate(product) }),
    onError: (error) => showError("The product stays on your wishlist", error),
    onSettled: refresh,
  });
  return mutate;
}
