import type { ScanDraft } from "@stoa/sdk";
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

export const EDITOR_TABS = [
  "prompt",
  "details",
  "price",
  "media",
  "samples",
  "tests",
  "tries",
  "discounts",
  "referrals",
  "versions",
] as const;

export type EditorTab = (typeof EDITOR_TABS)[number];

/** What the address of the editor says: its tab, the test run, and which of the panes a narrow window shows. */
export interface EditorSearch {
  tab?: EditorTab | undefined;
  run?: string | undefined;
  pane?: "run" | "buyer" | undefined;
  /** The versions that are compared. */
  version?: string | undefined;
  with?: string | undefined;
}

export const parseEditorSearch = (given: Record<string, unknown>): EditorSearch => {
  const tab = EDITOR_TABS.find((one) => one === given["tab"] && one !== "prompt");
  const pane = (["run", "buyer"] as const).find((one) => one === given["pane"]);
  const text = (name: "run" | "version" | "with") =>
    typeof given[name] === "string" && given[name] !== "" ? { [name]: given[name] } : {};
  return { ...(tab && { tab }), ...(pane && { pane }), ...text("run"), ...text("version"), ...text("with") };
};

/** The product with its content and the tag of its state. */
export const editorProductQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id, "editor"],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.products.get(id, {}, { signal }).withResponse();
      return { product: data, etag: headers.get("etag") ?? "" };
    },
  });

export const saleQuoteQuery = (price: number, currency: string, commission: number, countries: string[]) =>
  queryOptions({
    queryKey: ["sale-quote", price, currency, commission, countries],
    queryFn: async ({ signal }) =>
      await stoa.sales.quote(
        { price, currency, commissionBasisPoints: commission, countries: countries.join(",") },
        { signal },
      ),
    staleTime: 300_000,
    placeholderData: keepPreviousData,
  });

/** The newest run of the product that its author completed. */
export const lastTestRunQuery = (productId: string) =>
  queryOptions({
    queryKey: ["executions", "last-test-run", productId],
    queryFn: async ({ signal }) => {
      const filters = { productId, status: "completed", limit: 1 } as const;
      const { data } = await stoa.ai.executions.list(filters, { signal }).page();
      return data[0] ?? null;
    },
  });

/** What the scan finds in a draft that is not stored yet. */
export const draftScanQuery = (productId: string, draft: ScanDraft) =>
  queryOptions({
    queryKey: ["draft-scan", productId, draft],
    queryFn: async ({ signal }) => await stoa.products.scan(productId, draft, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    // Each state of the text is an entry.
    gcTime: 60_000,
    placeholderData: keepPreviousData,
  });

const MOST_CODES = 500;

/** Those that apply to the product: its own, and those for all products. */
export const productDiscountsQuery = (productId: string) =>
  queryOptions({
    queryKey: ["discount-codes", "product", productId],
    queryFn: async ({ signal }) => {
      const codes = await stoa.discountCodes.list({ limit: 100 }, { signal }).toArray({ limit: MOST_CODES });
      return codes.filter((code) => code.productId === null || code.productId === productId);
    },
  });

const MOST_VERSIONS = 500;

export const allVersionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["product", id, "versions", "all"],
    queryFn: ({ signal }) =>
      stoa.products.versions.list(id, { limit: 100 }, { signal }).toArray({ limit: MOST_VERSIONS }),
  });
