import type { Backup, LedgerVerification } from "@stoa/sdk";
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

const ROWS_PER_PAGE = 25;
const MAX_QUEUES = 100;
const RUNNING_INTERVAL_MS = 1_000;
const LIST_INTERVAL_MS = 10_000;

export const healthQuery = queryOptions({
  queryKey: ["operation", "health"],
  queryFn: async ({ signal }) => await stoa.admin.health.get({ signal }),
});

export const databaseQuery = queryOptions({
  queryKey: ["operation", "database"],
  queryFn: async ({ signal }) => await stoa.admin.database.get({ signal }),
});

export const configurationQuery = queryOptions({
  queryKey: ["operation", "configuration"],
  queryFn: async ({ signal }) => (await stoa.admin.configuration.get({ signal })).settings,
});

export const versionQuery = queryOptions({
  queryKey: ["operation", "version"],
  queryFn: async ({ signal }) => await stoa.admin.version.get({ signal }),
});

const isRunning = ({ status }: Pick<Backup | LedgerVerification, "status">) => status === "running";

/** The newest verification that an administrator started; null: none. */
export const verificationQuery = queryOptions({
  queryKey: ["operation", "verification"],
  queryFn: async ({ signal }) => {
    const { data } = await stoa.admin.ledgerVerifications.list({ limit: 1 }, { signal }).page();
    return data[0] ?? null;
  },
  refetchInterval: ({ state: { data } }) => data != null && isRunning(data) && RUNNING_INTERVAL_MS,
});

export interface BackupsSearch {
  page?: number;
}

export const backupsQuery = ({ page }: BackupsSearch) =>
  queryOptions({
    queryKey: ["operation", "backups", { page }],
    queryFn: ({ signal }) => stoa.admin.backups.list({ page, limit: ROWS_PER_PAGE }, { signal }).page(),
    refetchInterval: ({ state: { data } }) => (data?.data.some(isRunning) ?? false) && RUNNING_INTERVAL_MS,
  });

export const JOB_STATES = { waiting: "Waiting", running: "Running", failed: "Failed" } as const;

export interface JobsSearch {
  state?: keyof typeof JOB_STATES;
  queue?: string;
  page?: number;
}

export const jobsQuery = ({ state, queue, page }: JobsSearch) =>
  queryOptions({
    queryKey: ["operation", "jobs", { state, queue, page }],
    queryFn: ({ signal }) =>
      stoa.admin.jobs.list({ state, queue, page, limit: ROWS_PER_PAGE }, { signal }).page(),
    placeholderData: keepPreviousData,
    refetchInterval: LIST_INTERVAL_MS,
  });

export const queuesQuery = queryOptions({
  queryKey: ["operation", "queues"],
  queryFn: async ({ signal }) =>
    (await stoa.admin.queues.list({ limit: MAX_QUEUES }, { signal }).page()).data,
  refetchInterval: LIST_INTERVAL_MS,
});

export const EMAIL_STATUSES = { waiting: "Waiting", failed: "Failed", refused: "Refused" } as const;

export interface EmailsSearch {
  status?: keyof typeof EMAIL_STATUSES;
  page?: number;
}

export const emailsQuery = ({ status, page }: EmailsSearch) =>
  queryOptions({
    queryKey: ["operation", "emails", { status, page }],
    queryFn: ({ signal }) =>
      stoa.admin.emails.list({ status, page, limit: ROWS_PER_PAGE }, { signal }).page(),
    placeholderData: keepPreviousData,
    refetchInterval: LIST_INTERVAL_MS,
  });
