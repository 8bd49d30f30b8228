import type { AdminOrder, AdminUser } from "@stoa/sdk";
import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { choiceParam, dayParam, textParam } from "../lib/search-fields.ts";
import { pageNumber } from "../routes/search-params.ts";
import { ROWS } from "./moderation.ts";

type Given = Record<string, unknown>;

/** A day of the reader as the moment at which it begins, or ends. */
const startOf = (day: string): string => new Date(`${day}T00:00`).toISOString();
function endOf(day: string): string {
  const next = new Date(`${day}T00:00`);
  next.setDate(next.getDate() + 1);
  return next.toISOString();
}

export const ROLES = ["user", "seller", "admin"] as const;
export const USER_STATUSES = ["active", "banned", "closed"] as const;
export const PLANS = ["free", "pro", "business", "enterprise"] as const;
export const ROLE_NAMES = { user: "Buyer", seller: "Seller", admin: "Administrator" } as const;
export const PLAN_NAMES = {
  free: "Free",
  pro: "Pro",
  business: "Business",
  enterprise: "Enterprise",
} as const;
export interface UsersSearch {
  search?: string;
  role?: (typeof ROLES)[number];
  status?: (typeof USER_STATUSES)[number];
  plan?: AdminUser["plan"];
  page?: number;
}
export const parseUsersSearch = (given: Given): UsersSearch => ({
  ...textParam(given, "search"),
  ...choiceParam(given, "role", ROLES),
  ...choiceParam(given, "status", USER_STATUSES),
  ...choiceParam(given, "plan", PLANS),
  ...pageNumber(given),
});
export const usersQuery = (search: UsersSearch) =>
  queryOptions({
    queryKey: ["admin", "users", search],
    queryFn: ({ signal }) => stoa.admin.users.list({ ...search, limit: ROWS }, { signal }).page(),
  });

/** With the version that a change names, so that a change of another administrator is not lost. */
export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "user", id],
    queryFn: async ({ signal }) => {
      const { data, headers } = await stoa.admin.users.get(id, { signal }).withResponse();
      return { ...data, etag: headers.get("etag") };
    },
  });

/** The newest entries about an account, an order or a product. */
export const historyQuery = (target: string) =>
  queryOptions({
    queryKey: ["admin", "history", target],
    queryFn: async ({ signal }) =>
      (await stoa.admin.audit.list({ target, limit: 10 }, { signal }).page()).data,
  });

export interface ClientsSearch {
  search?: string;
  owner?: string;
  page?: number;
}
export const parseClientsSearch = (given: Given): ClientsSearch => ({
  ...textParam(given, "search"),
  ...textParam(given, "owner"),
  ...pageNumber(given),
});
export const clientsQuery = (search: ClientsSearch) =>
  queryOptions({
    queryKey: ["admin", "oauth-clients", search],
    queryFn: ({ signal }) => stoa.admin.oauthClients.list({ ...search, limit: ROWS }, { signal }).page(),
  });

export interface AuditSearch {
  actor?: string;
  action?: string;
  target?: string;
  /** The first and the last day. */
  from?: string;
  to?: string;
  page?: number;
}
export const parseAuditSearch = (given: Given): AuditSearch => ({
  ...textParam(given, "actor"),
  ...textParam(given, "action"),
  ...textParam(given, "target"),
  ...dayParam(given, "from"),
  ...dayParam(given, "to"),
  ...pageNumber(given),
});
export const auditFilters = ({ from, to, ...search }: AuditSearch) => ({
  ...search,
  ...(from !== undefined && { from: startOf(from) }),
  ...(to !== undefined && { to: endOf(to) }),
});
export const auditQuery = (search: AuditSearch) =>
  queryOptions({
    queryKey: ["admin", "audit", search],
    queryFn: ({ signal }) =>
      stoa.admin.audit.list({ ...auditFilters(search), limit: ROWS }, { signal }).page(),
  });

export const ORDER_STATUSES = [
  "pending",
  "requires_action",
  "completed",
  "failed",
  "canceled",
  "partially_refunded",
  "refunded",
  "disputed",
] as const satisfies readonly AdminOrder["status"][];
export interface OrdersSearch {
  status?: AdminOrder["status"];
  buyer?: string;
  seller?: string;
  product?: string;
  from?: string;
  to?: string;
  page?: number;
}
export const parseOrdersSearch = (given: Given): OrdersSearch => ({
  ...choiceParam(given, "status", ORDER_STATUSES),
  ...textParam(given, "buyer"),
  ...textParam(given, "seller"),
  ...textParam(given, "product"),
  ...dayParam(given, "from"),
  ...dayParam(given, "to"),
  ...pageNumber(given),
});
export const orderFilters = ({ from, to, ...search }: OrdersSearch) => ({
  ...search,
  ...(from !== undefined && { from: startOf(from) }),
  ...(to !== undefined && { to: endOf(to) }),
});
export const ordersQuery = (search: OrdersSearch) =>
  queryOptions({
    queryKey: ["admin", "orders", search],
    queryFn: ({ signal }) =>
      stoa.admin.orders.list({ ...orderFilters(search), limit: ROWS }, { signal }).page(),
  });

export const orderQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "order", id],
    queryFn: async ({ signal }) => {
      const filter = { orderId: id, limit: 100 };
      const [order, refunds, disputes] = await Promise.all([
        stoa.admin.orders.get(id, { signal }),
        stoa.admin.refunds.list(filter, { signal }).page(),
        stoa.admin.disputes.list(filter, { signal }).page(),
      ]);
      return { order, refunds: refunds.data, disputes: disputes.data };
    },
  });

export const REFUND_STATUSES = [
  "pending",
  "approved",
  "processing",
  "succeeded",
  "failed",
  "rejected",
  "canceled",
] as const;
export interface RefundsSearch {
  status?: (typeof REFUND_STATUSES)[number];
  page?: number;
}
export const parseRefundsSearch = (given: Given): RefundsSearch => ({
  ...choiceParam(given, "status", REFUND_STATUSES),
  ...pageNumber(given),
});
export const refundsQuery = (search: RefundsSearch) =>
  queryOptions({
    queryKey: ["admin", "refunds", search],
    queryFn: ({ signal }) => stoa.admin.refunds.list({ ...search, limit: ROWS }, { signal }).page(),
  });

export const DISPUTE_STATUSES = ["inquiry", "inquiry_closed", "open", "won", "lost"] as const;
export interface DisputesSearch {
  status?: (typeof DISPUTE_STATUSES)[number];
  page?: number;
}
export const parseDisputesSearch = (given: Given): DisputesSearch => ({
  ...choiceParam(given, "status", DISPUTE_STATUSES),
  ...pageNumber(given),
});
export const disputesQuery = (search: DisputesSearch) =>
  queryOptions({
    queryKey: ["admin", "disputes", search],
    queryFn: ({ signal }) => stoa.admin.disputes.list({ ...search, limit: ROWS }, { signal }).page(),
  });

export const PAYOUT_STATUSES = ["pending", "in_transit", "completed", "failed", "returned"] as const;
export interface PayoutsSearch {
  status?: (typeof PAYOUT_STATUSES)[number];
  seller?: string;
  page?: number;
}
export const parsePayoutsSearch = (given: Given): PayoutsSearch => ({
  ...choiceParam(given, "status", PAYOUT_STATUSES),
  ...textParam(given, "seller"),
  ...pageNumber(given),
});
export const payoutFilters = ({ seller, ...search }: PayoutsSearch) => ({
  ...search,
  ...(seller !== undefined && { sellerId: seller }),
});
export const payoutsQuery = (search: PayoutsSearch) =>
  queryOptions({
    queryKey: ["admin", "payouts", search],
    queryFn: ({ signal }) =>
      stoa.admin.payouts.list({ ...payoutFilters(search), limit: ROWS }, { signal }).page(),
  });

export const WEBHOOK_STATUSES = ["failing", "enabled", "disabled"] as const;
export interface WebhooksSearch {
  /** Failing ones without it. */
  status?: (typeof WEBHOOK_STATUSES)[number] | "all";
  owner?: string;
  page?: number;
}
export const parseWebhooksSearch = (given: Given): WebhooksSearch => ({
  ...choiceParam(given, "status", [...WEBHOOK_STATUSES, "all"] as const),
  ...textParam(given, "owner"),
  ...pageNumber(given),
});
export const webhookFilters = ({ status = "failing", ...search }: WebhooksSearch) => ({
  ...search,
  ...(status !== "all" && { status }),
});
export const allWebhooksQuery = (search: WebhooksSearch) =>
  queryOptions({
    queryKey: ["admin", "webhooks", search],
    queryFn: ({ signal }) =>
      stoa.admin.webhooks.list({ ...webhookFilters(search), limit: ROWS }, { signal }).page(),
  });
