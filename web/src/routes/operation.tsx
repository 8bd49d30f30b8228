import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "../lib/lazy-page.ts";
import {
  type BackupsSearch,
  backupsQuery,
  configurationQuery,
  databaseQuery,
  EMAIL_STATUSES,
  type EmailsSearch,
  emailsQuery,
  healthQuery,
  JOB_STATES,
  type JobsSearch,
  jobsQuery,
  queuesQuery,
  verificationQuery,
  versionQuery,
} from "../queries/operation.ts";
import { adminShellRoute } from "./admin-shell.ts";
import { rootRoute } from "./root.tsx";
import { pageNumber } from "./search-params.ts";

type Given = Record<string, unknown>;

const oneOf = <T extends object>(known: T, value: unknown): keyof T | undefined =>
  Object.keys(known).find((key) => key === value) as keyof T | undefined;

function parseJobsSearch(given: Given): JobsSearch {
  const state = oneOf(JOB_STATES, given["state"]);
  const { queue } = given;
  return {
    ...(state && { state }),
    ...(typeof queue === "string" && queue !== "" && { queue: queue.slice(0, 100) }),
    ...pageNumber(given),
  };
}

function parseEmailsSearch(given: Given): EmailsSearch {
  const status = oneOf(EMAIL_STATUSES, given["status"]);
  return { ...(status && { status }), ...pageNumber(given) };
}

const healthRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/health",
  loader: ({ context: { queryClient } }) =>
    Promise.all([
      queryClient.ensureQueryData(databaseQuery),
      queryClient.ensureQueryData(verificationQuery),
      queryClient.ensureQueryData(healthQuery),
    ]),
  component: lazyPage(() => import("../pages/operation/health.tsx")),
});

const jobsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/jobs",
  validateSearch: parseJobsSearch,
  loader: ({ context: { queryClient }, location: { search } }) =>
    Promise.all([
      queryClient.ensureQueryData(jobsQuery(parseJobsSearch(search))),
      queryClient.ensureQueryData(queuesQuery),
    ]),
  component: lazyPage(() => import("../pages/operation/jobs.tsx")),
});

const emailsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/emails",
  validateSearch: parseEmailsSearch,
  loader: ({ context: { queryClient }, location: { search } }) =>
    queryClient.ensureQueryData(emailsQuery(parseEmailsSearch(search))),
  component: lazyPage(() => import("../pages/operation/emails.tsx")),
});

const backupsRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/backups",
  validateSearch: (given: Given): BackupsSearch => pageNumber(given),
  loader: ({ context: { queryClient }, location: { search } }) =>
    queryClient.ensureQueryData(backupsQuery(pageNumber(search))),
  component: lazyPage(() => import("../pages/operation/backups.tsx")),
});

const configurationRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/configuration",
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(configurationQuery),
  component: lazyPage(() => import("../pages/operation/configuration.tsx")),
});

const versionRoute = createRoute({
  getParentRoute: () => adminShellRoute,
  path: "/admin/version",
  loader: ({ context: { queryClient } }) => queryClient.ensureQueryData(versionQuery),
  component: lazyPage(() => import("../pages/operation/version.tsx")),
});

export const operationRoutes = [
  healthRoute,
  jobsRoute,
  emailsRoute,
  backupsRoute,
  configurationRoute,
  versionRoute,
] as const;

/** For the operator of an installation without accounts, so outside of the administration. */
export const restoreRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/restore",
  component: lazyPage(() => import("../pages/operation/restore.tsx")),
});
