import type { Purchase } from "@stoa/sdk";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { PromptIcon, SearchIcon, WorkflowIcon } from "../../components/icons.tsx";
import { SortSelect } from "../../components/sort-select.tsx";
import { formatCount } from "../../lib/format.ts";
import type { LibrarySearch } from "../../routes/buying.tsx";
import { isWorkflow } from "./library-items.ts";

const route = getRouteApi("/library");

const SORTS = [
  { value: "newest", label: "Newest" },
  { value: "run", label: "Last run" },
  { value: "title", label: "Title" },
] as const;

/** Shorter lists are read faster than searched. */
const SEARCHABLE_FROM = 9;

export function LibraryFilters({ purchases, isPart }: { purchases: Purchase[]; isPart: boolean }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const workflows = purchases.filter(isWorkflow).length;
  const count = (n: number) => `${formatCount(n)}${isPart ? "+" : ""}`;
  return (
    <div className="row wrap bars">
      <nav className="row wrap" aria-label="Filters">
        <Chip label="All" count={count(purchases.length)} />
        <Chip
          show="prompts"
          label="Prompts"
          icon={<PromptIcon />}
          count={count(purchases.length - workflows)}
        />
        <Chip show="workflows" label="Workflows" icon={<WorkflowIcon />} count={count(workflows)} />
        <Chip show="updates" label="Updates" />
        <Chip show="refundable" label="Refundable" />
      </nav>
      <span className="row wrap end">
        {(purchases.length >= SEARCHABLE_FROM || search.q !== undefined) && (
          <label className="input narrow-find">
            <SearchIcon />
            <input
              type="search"
              aria-label="Search your library"
              placeholder="Search your library"
              maxLength={200}
              value={search.q ?? ""}
              onChange={({ target }) =>
                void navigate({
                  search: (old) => ({ ...old, q: target.value || undefined }),
                  replace: true,
                  resetScroll: false,
                })
              }
            />
          </label>
        )}
        <SortSelect
          sorts={SORTS}
          value={search.sort ?? "newest"}
          onChange={(sort) =>
            void navigate({
              search: (old) => ({ ...old, sort: sort === "newest" ? undefined : sort }),
              replace: true,
              resetScroll: false,
            })
          }
        />
      </span>
    </div>
  );
}

interface ChipProps {
  show?: LibrarySearch["show"];
  label: string;
  icon?: ReactNode;
  count?: string;
}

function Chip({ show, label, icon, count }: ChipProps) {
  const isOn = route.useSearch().show === show;
  return (
    <Link
      from="/library"
      to="/library"
      search={(old) => ({ ...old, show })}
      className={isOn ? "chip on" : "chip"}
      aria-current={isOn ? "true" : undefined}
      resetScroll={false}
    >
      {icon}
      {label} {count !== undefined && <b className="num">{count}</b>}
    </Link>
  );
}

export function NoMatches({ isLoading }: { isLoading: boolean }) {
  const { show, q } = route.useSearch();
  if (isLoading) return <div className="beam skeleton-row" aria-busy="true" />;
  const title =
    q !== undefined
      ? `Nothing matches “${q}”`
      : show === "updates"
        ? "No updates"
        : show === "refundable"
          ? "Nothing can be refunded now"
          : "None yet";
  return (
    <div className="beam">
      <EmptyState
        title={title}
        action={
          <Link to="/library" className="btn">
            Show all
          </Link>
        }
      >
        {show === "updates"
          ? "New versions of what you bought show here."
          : show === "refundable"
            ? "Each seller sets for how many days a purchase can be refunded."
            : "Other purchases may be under another filter."}
      </EmptyState>
    </div>
  );
}
