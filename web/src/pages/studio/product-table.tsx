import type { ProductCard, ProductRunCounts } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { copyText } from "../../components/copy-button.tsx";
import { Cover } from "../../components/cover.tsx";
import { AlertIcon, StarIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount, formatMoney, formatRating } from "../../lib/format.ts";
import { productStatus } from "../../lib/product-status.ts";
import { productPath } from "../../lib/slug.ts";
import { editorPath } from "../../lib/studio-links.ts";
import { useKeys } from "../../lib/use-keys.ts";
import { runCountsOfQuery } from "../../queries/studio.ts";
import { BulkBar } from "./bulk-bar.tsx";
import { useBulk } from "./use-bulk.ts";

/** The rows of one page, with what was chosen of them and what went wrong with each. */
export function ProductTable({ products }: { products: ProductCard[] }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const bulk = useBulk();
  const { data: runs } = useQuery(runCountsOfQuery(products.map(({ id }) => id)));
  const picked = products.filter(({ id }) => chosen.has(id));
  // What a filter or a page took away is no longer chosen.
  const ids = products.map(({ id }) => id).join();
  useEffect(() => setChosen((old) => new Set(ids.split(",").filter((id) => old.has(id)))), [ids]);
  const toggle = (id: string) =>
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  useKeys({
    x: () => {
      const id = document.activeElement?.closest("tr")?.dataset["id"];
      if (id) toggle(id);
    },
    Escape: () => setChosen(new Set()),
  });
  const areAll = picked.length === products.length;
  return (
    <>
      <table>
        <thead>
          <tr>
            <th className="pick">
              <input
                type="checkbox"
                className="check"
                aria-label="Choose all on this page"
                checked={areAll}
                ref={(box) => {
                  if (box) box.indeterminate = picked.length > 0 && !areAll;
                }}
                onChange={() => setChosen(new Set(areAll ? [] : products.map(({ id }) => id)))}
              />
            </th>
            <th>Product</th>
            <th>Status</th>
            <th className="r">Price</th>
            <th className="r">Sales</th>
            <th className="r">Rating</th>
            <th className="r">Failed runs</th>
            <th className="r studio-wide">Changed</th>
            <th>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {products.map((product) => (
            <ProductRow
              key={product.id}
              product={product}
              runs={runs?.get(product.id)}
              isChosen={chosen.has(product.id)}
              problem={bulk.problems.get(product.id)}
              onToggle={() => toggle(product.id)}
              onDelete={() => bulk.ask({ kind: "delete", products: [product] })}
            />
          ))}
        </tbody>
      </table>
      <BulkBar picked={picked} bulk={bulk} onDone={() => setChosen(new Set())} />
    </>
  );
}

interface ProductRowProps {
  product: ProductCard;
  runs: ProductRunCounts | undefined;
  isChosen: boolean;
  problem: string | undefined;
  onToggle: () => void;
  onDelete: () => void;
}

function ProductRow({ product, runs, isChosen, problem, onToggle, onDelete }: ProductRowProps) {
  const { id, title, price, currency, stats, rating, updatedAt, image } = product;
  const [tone, label] = productStatus(product);
  return (
    <tr data-id={id} className={isChosen ? "chosen" : ""}>
      <td className="pick">
        <input
          type="checkbox"
          className="check"
          aria-label={`Choose ${title}`}
          checked={isChosen}
          onChange={onToggle}
        />
      </td>
      <td className="name">
        <span className="row products-name">
          <Cover product={product} image={image} className="x" />
          <span className="products-text">
            <Link to={editorPath(product)} className="studio-row-link m" data-row dir="auto">
              {title}
            </Link>
            {problem !== undefined && (
              <span className="ferr">
                <AlertIcon /> {problem}
              </span>
            )}
          </span>
        </span>
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="r m">{formatMoney(price, currency)}</td>
      <td className="r" data-label="Sales">
        {formatCount(stats.purchases)}
      </td>
      <td className="r" data-label="Rating">
        <Rating {...rating} />
      </td>
      <td className="r" data-label="Failed runs">
        <Failures runs={runs} />
      </td>
      <td className="r soft studio-wide">
        <Time iso={updatedAt} />
      </td>
      <td className="r menu">
        <ProductMenu product={product} onDelete={onDelete} />
      </td>
    </tr>
  );
}

const Rating = ({ average, count }: { average: number; count: number }) =>
  count === 0 ? (
    <span className="soft">none</span>
  ) : (
    <span className="row nowrap products-rating">
      <StarIcon /> {formatRating(average)} <span className="soft">({formatCount(count)})</span>
    </span>
  );

function Failures({ runs }: { runs: ProductRunCounts | undefined }) {
  if (!runs) return <span className="soft">no runs</span>;
  const { failed30Days, last30Days } = runs;
  if (last30Days === 0) return <span className="soft">none in 30 days</span>;
  return (
    <span className={failed30Days > 0 ? "bad m nowrap" : "nowrap"}>
      {formatCount(failed30Days)} of {formatCount(last30Days)}
    </span>
  );
}

function ProductMenu({ product, onDelete }: { product: ProductCard; onDelete: () => void }) {
  const open = (path: string) => window.open(path, "_blank", "noopener");
  return (
    <RowMenu
      label={`More for ${product.title}`}
      actions={[
        {
          label: "Show in the market",
          isDisabled: product.status !== "published",
          onSelect: () => open(`/p/${productPath(product)}`),
        },
        {
          label: "Copy its link",
          isDisabled: product.status !== "published",
          onSelect: () => void copyText(`${location.origin}/p/${productPath(product)}`),
        },
        { label: "Delete", isDestructive: true, onSelect: onDelete },
      ]}
    />
  );
}
