import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "./envelope.ts";

const id = z.string();

/** What stands in `data` of each event type. */
export const eventData = {
  "product.published": z.object({
    product: z.object({ id, title: z.string(), type: z.string(), price: Amount, authorId: id }),
  }),
  "product.updated": z.object({
    product: z.object({
      id,
      changes: z.record(z.string(), z.object({ old: z.unknown(), new: z.unknown() })),
    }),
  }),
  "product.unpublished": z.object({
    product: z.object({
      id,
      title: z.string(),
      type: z.string(),
      authorId: id,
      reason: z.enum(["unpublished", "deleted", "suspended"]),
      unpublishedAt: Timestamp,
    }),
  }),
  "purchase.completed": z.object({
    order: z.object({ id, productId: id, buyerId: id, amount: Amount, currency: Currency }),
  }),
  "purchase.refunded": z.object({
    refund: z.object({ id, orderId: id, amount: Amount, reason: z.string() }),
  }),
  "payout.completed": z.object({
    payout: z.object({
      id,
      sellerId: id,
      amount: Amount,
      currency: Currency,
      period: z.object({ start: z.iso.date(), end: z.iso.date() }),
    }),
  }),
  "review.created": z.object({
    review: z.object({ id, productId: id, rating: z.int(), comment: z.string(), authorId: id }),
  }),
  "user.subscription.updated": z.object({
    subscription: z.object({
      userId: id,
      oldPlan: z.string().nullable(),
      newPlan: z.string(),
      effectiveDate: Timestamp,
    }),
  }),
  test: z.object({ message: z.string() }),
} as const;

export type EventType = keyof typeof eventData;
export type EventData<T extends EventType> = z.input<(typeof eventData)[T]>;
export const eventTypes = Object.keys(eventData) as EventType[];

export const Event = z
  .object({
    id,
    type: z.enum(eventTypes as [EventType, ...EventType[]]),
    created: Timestamp,
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "Event", description: "The envelope that webhooks deliver, byte for byte." });

const access = { who: "member", permission: "webhooks:write" } as const;

export const list = endpoint({
  name: "events.list",
  method: "GET",
  path: "/events",
  summary: "List your events, newest first",
  access,
  query: z.strictObject({ ...paging, type: z.string().max(60).optional() }),
  data: Event,
  list: true,
});

export const get = endpoint({
  name: "events.get",
  method: "GET",
  path: "/events/:eventId",
  summary: "Read one event",
  access,
  params: z.object({ eventId: z.string() }),
  data: Event,
  errors: ["EVENT_NOT_FOUND"],
});
