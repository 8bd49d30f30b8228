import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { EVENTS_SHOWN_FIRST, KEY_NAMES, ROWS_PER_PAGE, WEBHOOK_STATS, WEBHOOKS } from "../member-requests.ts";

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ signal }) => stoa.webhooks.list(WEBHOOKS, { signal }).page(),
});

/** With the version that a change names, so that a change in another tab is not lost. */
export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhook", id],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.webhooks.get(id, { signal }).withResponse();
      return { ...data, etag: headers.get("etag") };
    },
  });

export const egressQuery = queryOptions({
  queryKey: ["webhooks", "egress"],
  queryFn: async ({ signal }) => (await stoa.webhooks.egress({ signal })).addresses,
  staleTime: 300_000,
});

/** Of the last 24 hours. */
export const webhookStatsQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhook", id, "stats"],
    queryFn: async ({ signal }) => await stoa.webhooks.stats(id, WEBHOOK_STATS, { signal }),
  });

export const PERIODS = { "1h": "1 hour", "24h": "24 hours", "7d": "7 days" } as const;
export type Period = keyof typeof PERIODS;
const HOURS: Record<Period, number> = { "1h": 1, "24h": 24, "7d": 168 };

export const DELIVERY_STATUSES = [
  "pending",
  "retrying",
  "succeeded",
  "failed",
  "skipped",
  "canceled",
] as const;
type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** The state of a delivery log. All of it is in the address. */
export interface DeliverySearch {
  status?: DeliveryStatus;
  type?: string;
  /** 503, 5xx or none. */
  response?: string;
  within?: Period;
  event?: string;
  /** The delivery after which this page begins. */
  before?: string;
}

export const RESPONSE = /^([1-5](\d\d|xx)|none)$/;

export function parseDeliverySearch(given: Record<string, unknown>): DeliverySearch {
  const response = String(given["response"] ?? "");
  return {
    ...(DELIVERY_STATUSES.includes(given["status"] as DeliveryStatus) && {
      status: given["status"] as DeliveryStatus,
    }),
    ...textOf(given, "type"),
    ...(RESPONSE.test(response) && { response }),
    ...periodOf(given),
    ...textOf(given, "event"),
    ...textOf(given, "before"),
  };
}

const textOf = (given: Record<string, unknown>, name: string) => {
  const value = given[name];
  return typeof value === "string" && value !== "" ? { [name]: value.slice(0, 100) } : {};
};

const periodOf = (given: Record<string, unknown>) =>
  String(given["within"]) in PERIODS ? { within: given["within"] as Period } : {};

const since = (period: Period): string => new Date(Date.now() - HOURS[period] * 3_600_000).toISOString();

export const deliveriesQuery = (id: string, search: DeliverySearch) => {
  const { status, type, response, within, event, before } = search;
  return queryOptions({
    queryKey: ["webhook", id, "deliveries", { status, type, response, within, event, before }],
    queryFn: ({ signal }) =>
      stoa.webhooks
        .deliveries(
          id,
          {
            ...{ limit: ROWS_PER_PAGE, status, eventType: type, responseStatus: response },
            ...{ eventId: event, before, from: within && since(within) },
          },
          { signal },
        )
        .page(),
    placeholderData: keepPreviousData,
  });
};

export const deliveryQuery = (id: string) =>
  queryOptions({
    queryKey: ["delivery", id],
    queryFn: async ({ signal }) => await stoa.deliveries.get(id, { signal }),
  });

/** How many deliveries a recovery since this time would send again. */
export const recoverableQuery = (id: string, from: string) =>
  queryOptions({
    queryKey: ["webhook", id, "recoverable", from],
    queryFn: async ({ signal }) => {
      const count = async (status: "failed" | "skipped") =>
        (await stoa.webhooks.deliveries(id, { status, from, limit: 1 }, { signal }).page()).meta;
      const [failed, skipped] = await Promise.all([count("failed"), count("skipped")]);
      return {
        failed: failed.total,
        skipped: skipped.total,
        isEstimate: failed.totalIsEstimate === true || skipped.totalIsEstimate === true,
      };
    },
    staleTime: 0,
  });

export const recoveryQuery = (webhookId: string, recoveryId: string) =>
  queryOptions({
    queryKey: ["webhook", webhookId, "recovery", recoveryId],
    queryFn: async ({ signal }) => await stoa.webhooks.recovery(webhookId, recoveryId, { signal }),
  });

/** The state of the request log. All of it is in the address. */
export interface LogSearch {
  method?: string;
  /** 404 or 4xx. */
  status?: string;
  path?: string;
  key?: string;
  /** Default: API keys; all credentials where `requestId` names one request. */
  by?: "session" | "token" | "all";
  code?: string;
  requestId?: string;
  within?: Period;
  before?: string;
  /** The request that is open beside the list. */
  open?: string;
}

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export const CREDENTIALS = { token: "OAuth apps", session: "This website", all: "Anything" } as const;
const STATUS = /^[1-5](\d\d|xx)$/;

export function parseLogSearch(given: Record<string, unknown>): LogSearch {
  const status = String(given["status"] ?? "");
  return {
    ...(METHODS.includes(given["method"] as "GET") && { method: given["method"] as string }),
    ...(STATUS.test(status) && { status }),
    ...textOf(given, "path"),
    ...textOf(given, "key"),
    ...(String(given["by"]) in CREDENTIALS && { by: given["by"] as "all" }),
    ...textOf(given, "code"),
    ...textOf(given, "requestId"),
    ...periodOf(given),
    ...textOf(given, "before"),
    ...textOf(given, "open"),
  };
}

export const credentialOf = ({ by, requestId }: LogSearch) => {
  if (by === "all" || (by === undefined && requestId !== undefined)) return undefined;
  return by ?? ("key" as const);
};

const logFilters = (search: LogSearch) => {
  const { method, status, path, key, code, requestId, within } = search;
  return {
    ...{ method, status, path, apiKeyId: key, errorCode: code, requestId },
    ...{ credential: credentialOf(search), from: within && since(within) },
  };
};

export const requestsQuery = ({ open: _open, ...search }: LogSearch) =>
  queryOptions({
    queryKey: ["request-logs", search],
    queryFn: ({ signal }) =>
      stoa.requestLogs
        .list({ ...logFilters(search), before: search.before, limit: ROWS_PER_PAGE }, { signal })
        .page(),
    placeholderData: keepPreviousData,
  });

/** The newest errors that the other filters leave, for their groups. */
export const errorsQuery = (search: LogSearch) => {
  const { method, path, key, by, within } = search;
  const filters = { method, path, key, by, within };
  return queryOptions({
    queryKey: ["request-logs", "errors", filters],
    queryFn: async ({ signal }) => {
      const newest = async (status: string) =>
        (await stoa.requestLogs.list({ ...logFilters(filters), status, limit: 100 }, { signal }).page()).data;
      const [client, server] = await Promise.all([newest("4xx"), newest("5xx")]);
      return [...client, ...server];
    },
    placeholderData: keepPreviousData,
  });
};

export const apiKeysQuery = queryOptions({
  queryKey: ["api-keys", "names"],
  queryFn: async ({ signal }) => (await stoa.apiKeys.list(KEY_NAMES, { signal }).page()).data,
});

/** The state of the live events. All of it is in the address. */
export interface EventsSearch {
  type?: string;
  /** A text in the event. */
  q?: string;
  /** The event that is open beside the list. */
  open?: string;
}

export const parseEventsSearch = (given: Record<string, unknown>): EventsSearch => ({
  ...textOf(given, "type"),
  ...textOf(given, "q"),
  ...textOf(given, "open"),
});

export const newestEventsQuery = (type: string | undefined) =>
  queryOptions({
    queryKey: ["events", type ?? "all"],
    queryFn: ({ signal }) => stoa.events.list({ type, limit: EVENTS_SHOWN_FIRST }, { signal }).page(),
    // The stream goes on after the newest of these.
    staleTime: 0,
    gcTime: 0,
  });

export const eventQuery = (id: string) =>
  queryOptions({
    queryKey: ["event", id],
    queryFn: async ({ signal }) => await stoa.events.get(id, { signal }),
  });
