import type { ProductDetail } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, useMatchRoute } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { formatCount } from "../../lib/format.ts";
import { productPath } from "../../lib/slug.ts";
import { executionsQuery } from "../../queries/running.ts";
import { Cover } from "../cover.tsx";
import { ShowAsCode } from "../show-as-code.tsx";

type Tab = "compare" | "history";

interface RunBarProps {
  product: ProductDetail;
  /** Of the run that is shown, or would start. */
  version: string;
  code: { curl: string; sdk: string };
  children?: ReactNode;
}

/** The head of the pages on which a product runs. */
export function RunBar({ product, version, code, children }: RunBarProps) {
  const isPrompt = product.type !== "WORKFLOW";
  const { data: history } = useQuery(executionsQuery({ productId: product.id, limit: 5 }));
  const total = history?.meta.total;
  return (
    <div className="run-bar">
      <Cover product={product} image={product.images[0] ?? null} className="x" />
      <h1 className="cut" dir="auto" title={product.title}>
        <Link to="/p/$slug" params={{ slug: productPath(product) }}>
          {product.title}
        </Link>
      </h1>
      {children}
      <nav className="seg s" aria-label="Views">
        <TabLink product={product}>Run</TabLink>
        {isPrompt && (
          <TabLink product={product} tab="compare">
            Compare
          </TabLink>
        )}
        <TabLink product={product} tab="history">
          History {total !== undefined && total > 0 && <span className="num">{formatCount(total)}</span>}
        </TabLink>
      </nav>
      <span className="tag version">Version {version}</span>
      <span className="code">
        <ShowAsCode {...code} />
      </span>
    </div>
  );
}

interface TabLinkProps {
  product: ProductDetail;
  tab?: Tab;
  children: ReactNode;
}

/** Keeps what the run page shows; from elsewhere it starts fresh. */
function TabLink({ product, tab, children }: TabLinkProps) {
  const isThere = useMatchRoute()({ to: "/run/$productId", params: { productId: product.id } });
  return (
    <Link
      to="/run/$productId"
      params={{ productId: product.id }}
      search={(old: object) => ({ ...(isThere && old), tab, page: undefined, status: undefined })}
      activeOptions={{ exact: true, includeSearch: true }}
    >
      {children}
    </Link>
  );
}
