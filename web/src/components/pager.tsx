import { Link } from "@tanstack/react-router";

interface PagerProps {
  page?: number | undefined;
  hasMore: boolean;
}

/** Links to the pages before and after. The number is the search parameter `page` of the present address; the first page has none. */
export function Pager({ page = 1, hasMore }: PagerProps) {
  if (page === 1 && !hasMore) return null;
  return (
    <nav className="row between pages" aria-label="Pages">
      {page > 1 ? <PageLink page={page - 1} rel="prev" /> : <span />}
      {hasMore && <PageLink page={page + 1} rel="next" />}
    </nav>
  );
}

const PageLink = ({ page, rel }: { page: number; rel: "prev" | "next" }) => (
  <Link
    to="."
    search={(old: object) => ({ ...old, page: page === 1 ? undefined : page })}
    className="btn"
    rel={rel}
  >
    Page {page}
  </Link>
);
