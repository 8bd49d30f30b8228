import type { ProductCard as Product } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import { formatCount, formatMoney, formatRating } from "../lib/format.ts";
import { productPath } from "../lib/slug.ts";
import { CardScoreLines, RowScore } from "./card-score.tsx";
import { Cover } from "./cover.tsx";
import { PromptIcon, StarIcon, WorkflowIcon } from "./icons.tsx";

export function ProductType({ type }: { type: string }) {
  return type === "WORKFLOW" ? (
    <>
      <WorkflowIcon size={14} /> Workflow
    </>
  ) : (
    <>
      <PromptIcon size={14} /> Prompt
    </>
  );
}

export function Stars({ average, count }: { average: number; count: number }) {
  if (count === 0) return null;
  return (
    <span className="row stars">
      <StarIcon size={12} className="star" />
      <span className="num">{formatRating(average)}</span>
      <span className="num faint">({formatCount(count)})</span>
      <span className="hidden">of 5 stars</span>
    </span>
  );
}

export function ProductCard({ product, isFirst = false }: { product: Product; isFirst?: boolean }) {
  const { author, rating, score } = product;
  return (
    <Link to="/p/$slug" params={{ slug: productPath(product) }} className="card">
      <Cover product={product} image={product.image} isFirst={isFirst} />
      <span className="row between">
        <strong className="cut" title={product.title} dir="auto">
          {product.title}
        </strong>
        <span className="num b">{formatMoney(product.price, product.currency)}</span>
      </span>
      <span className="row sm soft who">
        <ProductType type={product.type} /> by
        <span className="cut" dir="auto">
          {author.name}
        </span>
      </span>
      <span className="sm row">
        <Stars {...rating} />
      </span>
      {score && <CardScoreLines score={score} />}
    </Link>
  );
}

/** The same in a row, for the list view of a search. */
export function ProductRow({ product }: { product: Product }) {
  const { score } = product;
  return (
    <Link to="/p/$slug" params={{ slug: productPath(product) }} className="product-row">
      <Cover product={product} image={product.image} className="t" />
      <span className="stack">
        <strong className="cut" dir="auto">
          {product.title}
        </strong>
        <span className="sm soft cut" dir="auto">
          {product.description}
        </span>
        <span className="row sm soft who">
          <ProductType type={product.type} /> by {product.author.name} <Stars {...product.rating} />
        </span>
      </span>
      {score && <RowScore score={score} />}
      <span className="num b price">{formatMoney(product.price, product.currency)}</span>
    </Link>
  );
}
