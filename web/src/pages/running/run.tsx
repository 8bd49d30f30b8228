import "./run.css";
import type { ProductDetail } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy } from "react";
import { Part } from "../../components/part.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatMoney } from "../../lib/format.ts";
import { productPath } from "../../lib/slug.ts";
import { useTitle } from "../../lib/use-title.ts";
import { openedProductQuery, productQuery } from "../../queries/market.ts";
import { PromptRunner } from "./run-prompt.tsx";

const WorkflowRunner = lazy(() => import("./run-workflow.tsx"));

const route = getRouteApi("/run/$productId");

export default function Run() {
  const { productId } = route.useParams();
  const { data: product } = useSuspenseQuery(productQuery(productId));
  useTitle(`Run ${product.title}`);
  if (product.access.reason === "none") return <NotBought product={product} />;
  if (product.type === "WORKFLOW")
    return (
      <Part fallback={<SkeletonRows />}>
        <OpenedWorkflow key={product.id} productId={product.id} />
      </Part>
    );
  return <PromptRunner key={product.id} product={product} />;
}

/** The form of a workflow follows from its definition. */
function OpenedWorkflow({ productId }: { productId: string }) {
  const { data: product } = useSuspenseQuery(openedProductQuery(productId));
  return <WorkflowRunner product={product} />;
}

const NotBought = ({ product }: { product: ProductDetail }) => (
  <main className="page narrow" id="content">
    <h1 className="title" dir="auto">
      {product.title}
    </h1>
    <p className="soft lead">Buy it once, then run it as often as you like with your own provider key.</p>
    <p className="row wrap">
      <Link className="btn primary" to="/checkout/$productId" params={{ productId: product.id }}>
        Buy for {formatMoney(product.price, product.currency)}
      </Link>
      <Link className="link" to="/p/$slug" params={{ slug: productPath(product) }}>
        What it does
      </Link>
    </p>
  </main>
);
