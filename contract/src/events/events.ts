import { z } from "zod";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";

const id = z.string();

/** The schema of `data` by event type. */
export const eventData = {
  "product.published": z
    .object({ product: z.object({ id, title: z.string(), type: z.string(), price: Amount, authorId: id }) })
    .describe("A product is on sale. Sent to its author"),
  "product.updated": z
    .object({
      product: z.object({
        id,
        changes: z
          .record(z.string(), z.object({ old: z.unknown(), new: z.unknown() }))
          .describe("By the name of the field"),
      }),
    })
    .describe("A product, its files or its images changed. Sent to its author"),
  "product.unpublished": z
    .object({
      product: z.object({
        id,
        title: z.string(),
        type: z.string(),
        authorId: id,
        reason: z.enum(["unpublished", "deleted", "suspended"]),
        unpublishedAt: Timestamp,
      }),
    })
    .describe("A product is no longer on sale. Sent to its author"),
  "purchase.completed": z
    .object({ order: z.object({ id, productId: id, buyerId: id, amount: Amount, currency: Currency }) })
    .describe("A product was bought. Sent to seller and buyer"),
  "purchase.refunded": z
    .object({ refund: z.object({ id, orderId: id, amount: Amount, reason: z.string() }) })
    .describe("A refund was paid. Sent to seller and buyer"),
  "payout.completed": z
    .object({
      payout: z.object({
        id,
        sellerId: id,
        amount: Amount,
        currency: Currency,
        period: z.object({ start: z.iso.date(), end: z.iso.date() }),
      }),
    })
    .describe("A payout has reached its seller. Sent to the seller"),
  "review.created": z
    .object({ review: z.object({ id, productId: id, rating: z.int(), comment: z.string(), authorId: id }) })
    .describe("A product was reviewed. Sent to its author"),
  "evaluation.completed": z
    .object({
      evaluation: z.object({
        id,
        productId: id,
        version: z.string(),
        models: z.array(
          z.object({
            provider: z.string().nullable(),
            model: z.string().nullable(),
            passed: z.int(),
            n: z.int(),
          }),
        ),
        completedAt: Timestamp,
      }),
    })
    .describe("An evaluation of a product completed. Sent to its author"),
  "evaluation.regressed": z
    .object({
      evaluation: z.object({
        id,
        productId: id,
        version: z.string(),
        regressions: z.array(
          z.object({
            provider: z.string().nullable(),
            model: z.string().nullable(),
            cause: z.enum(["model", "version"]),
            before: z.object({ evaluationId: id, version: z.string(), passed: z.int(), n: z.int() }),
            after: z.object({ passed: z.int(), n: z.int() }),
          }),
        ),
        completedAt: Timestamp,
      }),
    })
    .describe(
      "An evaluation found models that pass fewer tests than before, beyond the intervals. Once for each model, until it passes again. Sent to the author",
    ),
  "user.subscription.updated": z
    .object({
      subscription: z.object({
        userId: id,
        oldPlan: z.string().nullable(),
        newPlan: z.string(),
        effectiveDate: Timestamp,
      }),
    })
    .describe("The plan of an account changed. Sent to the account"),
  test: z
    .object({ message: z.string() })
    .describe("A test of one endpoint was requested. Sent to that endpoint only"),
} as const;

/**
 * Sent to the `webhookUrl` of a run only: in the envelope of events, with their headers and retries, signed with the
 * account's callback secret.
 */
const callbackSchema = (status: string) =>
  z.object({
    execution: z.object({
      id,
      workflowId: id,
      productVersion: z.string(),
      status: z.string().describe(status),
      output: z.unknown().describe("null if it is larger than 200,000 characters: read it at outputUrl"),
      outputUrl: z.string(),
      error: z.object({ code: z.string(), message: z.string() }).nullable(),
      waitingFor: z.array(z.string()).describe("Ids of the steps that wait for an approval"),
      usage: z.unknown(),
      duration: z.number().nullable().describe("Seconds"),
      createdAt: Timestamp,
      completedAt: Timestamp.nullable(),
    }),
  });

export const callbackData = {
  "execution.completed": callbackSchema("completed").describe("A workflow run completed"),
  "execution.failed": callbackSchema("failed").describe("A workflow run failed"),
  "execution.canceled": callbackSchema("canceled").describe("A workflow run was canceled"),
  "execution.waiting": callbackSchema("waiting").describe("A workflow run waits for an approval"),
} as const;

export type CallbackType = keyof typeof callbackData;
export type CallbackData = z.input<(typeof callbackData)[CallbackType]>;
export const callbackTypes = Object.keys(callbackData) as CallbackType[];

export type EventType = keyof typeof eventData;
export type EventData<T extends EventType> = z.input<(typeof eventData)[T]>;
export const eventTypes = Object.keys(eventData) as EventType[];

export const Event = z
  .object({
    id,
    type: z.enum(eventTypes as [EventType, ...EventType[]]),
    created: Timestamp,
    data: z.record(z.string(), z.unknown()).describe("As in the webhook of its type"),
  })
  .meta({ id: "Event", description: "The envelope that webhooks deliver, byte for byte." });

/** The whole event of one type. */
export const eventSchema = (type: EventType | CallbackType) =>
  Event.extend({ type: z.literal(type), data: { ...eventData, ...callbackData }[type] }).meta({
    id: `${toPascalCase(type)}Event`,
  });

/** `product.published` becomes `ProductPublished`. */
const toPascalCase = (type: EventType | CallbackType) =>
  type.replace(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase());

const types = z.array(z.enum(eventTypes as [EventType, ...EventType[]]));

const access = { who: "member", permission: "webhooks:write" } as const;

export const list = endpoint({
  name: "events.list",
  method: "GET",
  path: "/events",
  summary: "List your events, newest first",
  access,
  query: z.strictObject({ ...paging, type: filter(z.string().max(60).toLowerCase()) }),
  response: listOf(Event),
});

export const get = endpoint({
  name: "events.get",
  method: "GET",
  path: "/events/:eventId",
  summary: "Read one event",
  access,
  params: z.object({ eventId: z.string() }),
  response: one(Event),
  errors: ["EVENT_NOT_FOUND"],
});

export const stream = endpoint({
  name: "events.stream",
  method: "GET",
  path: "/events/stream",
  summary: "Stream your events",
  description:
    "Server-sent events: `id` is the event's id, `event` its type, `data` the exact bytes of the webhook. A client that reconnects with the last id as `Last-Event-ID` misses no event and gets none twice. Clients that cannot set a header send `lastEventId`, which has priority. The id `evt_00000000000000000000000000` is before the oldest stored event. The first block has an id and no data: the start of this stream. An id that is unknown or older than 30 days is 404: start without one, and read missing events at `GET /events`. A comment comes every 15 seconds. An account can have 10 streams at a time in each process of the service; another is 429. A client that reads nothing for 30 seconds is disconnected, and can reconnect with the last id.",
  access,
  query: z.strictObject({
    types: filter(
      z
        .union([
          z.array(z.string().toLowerCase()),
          z.string().transform((text) => text.toLowerCase().split(",")),
        ])
        .pipe(types),
      "Only these, with commas or repeated; all when omitted",
    ),
    lastEventId: z.string().max(100).optional().describe("In place of the header Last-Event-ID"),
  }),
  response: { kind: "events", data: Event },
  errors: ["EVENT_NOT_FOUND"],
});
