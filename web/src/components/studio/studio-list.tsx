import "./studio.css";
import type { Page } from "@stoa/sdk";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { formatCount } from "../../lib/format.ts";
import { ErrorStrip } from "../page-error.tsx";
import { Pager } from "../pager.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { SkeletonRows } from "../skeleton.tsx";

interface StudioListProps<Item> {
  result: UseQueryResult<Page<Item>>;
  page?: number | undefined;
  /** One and many: ["sale", "sales"]. */
  noun: readonly [string, string];
  code: { curl: string; sdk: string };
  /** In place of a list that has nothing. */
  empty: ReactNode;
  children: (items: Item[]) => ReactNode;
}

/** A page of a list: while it loads, when it failed, when it is empty, and its end. The rows before stay until the next ones are there. */
export function StudioList<Item>(props: StudioListProps<Item>) {
  const { result, page, noun, code, empty, children } = props;
  const { data, error, isPlaceholderData, refetch } = result;
  return (
    <>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows />}
      {data?.data.length === 0 && <div className="beam studio-block">{empty}</div>}
      {data && data.data.length > 0 && (
        <div
          className={isPlaceholderData ? "studio-list loading" : "studio-list"}
          aria-busy={isPlaceholderData}
        >
          {children(data.data)}
        </div>
      )}
      {data && (
        <div className="row between wrap studio-foot">
          <span className="sm soft">
            {data.meta.totalIsEstimate ? "At least " : ""}
            {formatCount(data.meta.total)} {data.meta.total === 1 ? noun[0] : noun[1]}
          </span>
          <ShowAsCode {...code} />
        </div>
      )}
      {data && <Pager page={page} hasMore={data.hasMore} />}
    </>
  );
}
