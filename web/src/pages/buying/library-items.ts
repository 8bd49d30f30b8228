import type { Execution, Purchase, PurchaseDetail } from "@stoa/sdk";
import { useQueries } from "@tanstack/react-query";
import { formatCost } from "../../lib/format.ts";
import { openRefund } from "../../lib/orders.ts";
import { isOwned, purchaseQuery } from "../../queries/buying.ts";
import type { LibrarySearch } from "../../routes/buying.tsx";

/** The longest window that sellers can offer, and a day for clocks that differ. */
const REFUND_DAYS = 31;

/** A purchase with what is known about it. */
export interface LibraryItem {
  purchase: Purchase;
  /** undefined: not loaded. */
  detail: PurchaseDetail | undefined;
  lastRun: Execution | undefined;
}

/** The newest purchase of each product that the buyer has. */
export function ownedProducts(purchases: Purchase[]): Purchase[] {
  const seen = new Set<string>();
  return purchases.filter((purchase) => {
    const isNew = isOwned(purchase) && !seen.has(purchase.product.id);
    if (isNew) seen.add(purchase.product.id);
    return isNew;
  });
}

export const lastRunByProduct = (runs: Execution[]): Map<string, Execution> =>
  new Map(runs.toReversed().map((run) => [run.productId, run]));

export const isWorkflow = ({ product }: Purchase) => product.type === "WORKFLOW";

export function filterAndSort(
  purchases: Purchase[],
  { show, sort, q }: LibrarySearch,
  lastRuns: Map<string, Execution>,
): Purchase[] {
  const words = q?.toLocaleLowerCase() ?? "";
  const since = Date.now() - REFUND_DAYS * 86_400_000;
  const found = purchases.filter((purchase) => {
    const { title, author } = purchase.product;
    if (words !== "" && !`${title} ${author.name}`.toLocaleLowerCase().includes(words)) return false;
    if (show === "prompts") return !isWorkflow(purchase);
    if (show === "workflows") return isWorkflow(purchase);
    if (show === "refundable") return Date.parse(purchase.completedAt ?? purchase.createdAt) > since;
    return true;
  });
  if (sort === "title")
    return found.toSorted((one, other) => one.product.title.localeCompare(other.product.title));
  if (sort === "run") {
    const ranAt = ({ product }: Purchase) => lastRuns.get(product.id)?.createdAt ?? "";
    return found.toSorted((one, other) => (ranAt(one) < ranAt(other) ? 1 : -1));
  }
  return found;
}

export function matchesFilter(detail: PurchaseDetail, show: LibrarySearch["show"]): boolean {
  return show === "updates"
    ? updateOf(detail) !== null
    : detail.refundable.amount > 0 || openRefund(detail) !== undefined;
}

/** The purchases in full, by order; those that are not loaded yet are missing. */
export const useDetails = (purchases: Purchase[]) =>
  useQueries({
    queries: purchases.map(({ orderId }) => purchaseQuery(orderId)),
    combine: (results) => ({
      details: new Map(results.flatMap(({ data }) => (data ? [[data.orderId, data] as const] : []))),
      isLoading: results.some(({ isPending }) => isPending),
      error: results.find(({ data, error }) => !data && error)?.error ?? null,
      retry: () => {
        for (const { error, refetch } of results) if (error) void refetch();
      },
    }),
  });

const majorOf = (version: string) => Number(version.split(".")[0]);

/** What is newer than the version that was bought; null: nothing. */
export function updateOf({ product, entitlement }: PurchaseDetail): string | null {
  if (entitlement === null) return null;
  const { version, latestVersion } = entitlement;
  if (majorOf(latestVersion) > majorOf(version)) return `${latestVersion}, new major`;
  return version === product.version ? null : `updated from ${product.version}`;
}

export const costOf = ({ usage }: Execution): string =>
  usage === null ? "" : usage.costKnown ? formatCost(usage.estimatedCost) : "cost unknown";
