import "./admin-list.css";
import type { ReactNode } from "react";
import { formatCount } from "../../lib/format.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useTitle } from "../../lib/use-title.ts";
import { EmptyState } from "../empty-state.tsx";
import { Pager } from "../pager.tsx";
import { ShowAsCode } from "../show-as-code.tsx";

interface ListResult {
  data: readonly unknown[];
  hasMore: boolean;
  meta: { total: number; totalIsEstimate?: boolean };
}

interface AdminListProps {
  title: string;
  intro?: ReactNode;
  /** The requests behind the list. */
  code: { curl: string; sdk: string };
  filters?: ReactNode;
  result: ListResult;
  isFetching?: boolean;
  page: number | undefined;
  /** "user" and "users" */
  nouns: readonly [one: string, many: string];
  empty: { title: string; text: string; action?: ReactNode };
  /** The rows, which are a table with the class `admin-table`, or a list. */
  children: ReactNode;
}

/** A page with a list that administrators filter. */
export function AdminList(props: AdminListProps) {
  const { title, intro, code, filters, result, isFetching = false, page, nouns, empty, children } = props;
  const { total, totalIsEstimate } = result.meta;
  useTitle(title);
  useListKeys();
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">{title}</h1>
        <ShowAsCode {...code} />
      </div>
      {intro && <p className="soft sm admin-intro">{intro}</p>}
      {filters && <search className="row wrap admin-filters">{filters}</search>}
      <div className={isFetching ? "admin-rows fetching" : "admin-rows"} aria-busy={isFetching}>
        {result.data.length === 0 ? (
          <EmptyState title={empty.title} action={empty.action}>
            {empty.text}
          </EmptyState>
        ) : (
          children
        )}
      </div>
      {total > 0 && (
        <p className="sm soft admin-total">
          {totalIsEstimate ? "More than " : ""}
          {formatCount(total)} {nouns[total === 1 ? 0 : 1]}
        </p>
      )}
      <Pager page={page} hasMore={result.hasMore} />
    </main>
  );
}
