import type { QueryClient } from "@tanstack/react-query";
import { createRoute } from "@tanstack/react-router";
import { STATUS_FILTERS } from "../components/running/status-filters.ts";
import { lazyPage } from "../lib/lazy-page.ts";
import { productQuery } from "../queries/market.ts";
import {
  executionQuery,
  executionsQuery,
  keysQuery,
  modelsQuery,
  type RunsSearch,
  runnableTitlesQuery,
  sharedRunQuery,
  toRunFilters,
} from "../queries/running.ts";
import { requireAccount, rootRoute } from "./root.tsx";
import { pageNumber } from "./search-params.ts";

const TABS = ["compare", "history"] as const;
const TYPES = ["prompt", "workflow"] as const;

const EXECUTION = /^exec_[0-9a-z]{26}$/;
const VERSION = /^\d+\.\d+\.\d+$/;
const STEP = /^[A-Za-z]\w{0,63}$/;

type Given = Record<string, unknown>;

const textAt = (given: Given, name: string, form: RegExp) => {
  const value = given[name];
  return typeof value === "string" && form.test(value) ? { [name]: value } : {};
};

const oneOf = <T extends string>(given: Given, name: string, values: readonly T[]) => {
  const value = values.find((one) => one === given[name]);
  return value === undefined ? {} : { [name]: value };
};

export interface RunSearch {
  tab?: (typeof TABS)[number] | undefined;
  /** The run that is shown. */
  run?: string | undefined;
  /** Compared runs, with commas. */
  runs?: string | undefined;
  /** The run whose input fills the form. */
  from?: string | undefined;
  version?: string | undefined;
  /** Of a workflow, the step in the pane. */
  step?: string | undefined;
  status?: (typeof STATUS_FILTERS)[number] | undefined;
  page?: number | undefined;
}

const parseRunSearch = (given: Given): RunSearch => ({
  ...oneOf(given, "tab", TABS),
  ...textAt(given, "run", EXECUTION),
  ...textAt(given, "runs", /^exec_[0-9a-z]{26}(,exec_[0-9a-z]{26}){0,3}$/),
  ...textAt(given, "from", EXECUTION),
  ...textAt(given, "version", VERSION),
  ...textAt(given, "step", STEP),
  ...oneOf(given, "status", STATUS_FILTERS),
  ...pageNumber(given),
});

/** A run that is gone does not stop the page: it says so in its place. */
const prefetchRuns = (client: QueryClient, ids: (string | undefined)[]) =>
  ids.map((id) =>
    id === undefined ? undefined : client.ensureQueryData(executionQuery(id)).catch(() => null),
  );

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/run/$productId",
  beforeLoad: requireAccount,
  validateSearch: parseRunSearch,
  loaderDeps: ({ search: { run, from, runs } }) => ({ run, from, runs }),
  loader: async ({ context: { queryClient }, params, deps }) => {
    await Promise.all([
      queryClient.ensureQueryData(productQuery(params.productId)),
      queryClient.ensureQueryData(keysQuery),
      queryClient.ensureQueryData(modelsQuery("sandbox")),
      ...prefetchRuns(queryClient, [deps.run, deps.from, ...(deps.runs?.split(",") ?? [])]),
    ]);
  },
  component: lazyPage(() => import("../pages/running/run.tsx")),
});

const parseRunsSearch = (given: Given): RunsSearch => ({
  ...oneOf(given, "status", STATUS_FILTERS),
  ...oneOf(given, "type", TYPES),
  ...pageNumber(given),
});

const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  beforeLoad: requireAccount,
  validateSearch: parseRunsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) =>
    Promise.all([
      queryClient.ensureQueryData(executionsQuery(toRunFilters(deps))),
      queryClient.ensureQueryData(runnableTitlesQuery),
    ]),
  component: lazyPage(() => import("../pages/running/runs.tsx")),
});

const executionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$executionId",
  beforeLoad: requireAccount,
  validateSearch: (given: Given): { step?: string | undefined } => textAt(given, "step", STEP),
  loader: async ({ context: { queryClient }, params }) => {
    const { productId } = await queryClient.ensureQueryData(executionQuery(params.executionId));
    // A product that is gone leaves its runs.
    await queryClient.ensureQueryData(productQuery(productId)).catch(() => null);
  },
  component: lazyPage(() => import("../pages/running/run-detail.tsx")),
});

const sharedRunRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/shared/$token",
  loader: ({ context: { queryClient }, params }) => queryClient.ensureQueryData(sharedRunQuery(params.token)),
  component: lazyPage(() => import("../pages/running/shared-run.tsx")),
});

export const runningRoutes = [runRoute, runsRoute, executionRoute, sharedRunRoute] as const;
