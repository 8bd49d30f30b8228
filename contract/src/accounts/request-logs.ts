import { z } from "zod";
import { endpoint, listOf } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";

export const REQUEST_LOG_RETENTION_DAYS = 7;

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
export const credentials = ["key", "session", "token"] as const;

export const LoggedRequest = z
  .object({
    id: z.string(),
    requestId: z.string().describe("The X-Request-Id of the response"),
    at: Timestamp.describe("When the response was complete"),
    method: z.string(),
    path: z.string().describe("Without the query, which may have secrets; at most 300 characters"),
    operation: z.string().nullable().describe("The operation id, such as products.list; null: no such path"),
    status: z.int(),
    errorCode: z.string().nullable().describe("The code of an error response"),
    durationMs: z.number().describe("From the request's head to the end of the response"),
    credential: z.enum(credentials).describe("An API key, a session, or an OAuth token"),
    apiKeyId: z.string().nullable().describe("The id of the API key"),
    userAgent: z.string().nullable().describe("At most 300 characters"),
  })
  .meta({ id: "LoggedRequest" });

export type LoggedRequest = z.input<typeof LoggedRequest>;

const time = z.iso.datetime({ offset: true }).optional();

const STATUS = /^[1-5](\d\d|xx)$/;

export const list = endpoint({
  name: "requestLogs.list",
  tag: "request-logs",
  method: "GET",
  path: "/request-logs",
  summary: "List your API requests, newest first",
  description: `Your requests of the last ${REQUEST_LOG_RETENTION_DAYS} days to paths below /v1, whatever came of them, about a second after their responses. Neither bodies nor queries nor keys are stored. Not listed are requests without a valid credential, those over the rate limit, and those to this list. More than 100 of your requests in a second, or 1,000 of all accounts in a process, leave some out. Filters search your newest 50,000 requests, and with before the 50,000 older than that one.`,
  access: { who: "member", permission: "webhooks:write" },
  query: z.strictObject({
    ...paging,
    before: z
      .string()
      .max(100)
      .optional()
      .describe(
        "Only requests older than this one, by its id. With the last id of a page it gives the next page, at the same cost at any depth",
      ),
    method: filter(z.string().toUpperCase().pipe(z.enum(methods))),
    status: filter(
      z.string().toLowerCase().regex(STATUS, "must be a status such as 404, or a class such as 4xx"),
      "A status such as 404, or a class such as 4xx",
    ),
    path: z.string().max(300).optional().describe("Only paths that begin with this text: /v1/products"),
    apiKeyId: z.string().max(100).optional().describe("Only requests with this API key"),
    credential: filter(z.enum(credentials)),
    errorCode: z
      .string()
      .max(60)
      .toUpperCase()
      .optional()
      .describe("The code of an error response: NOT_FOUND"),
    requestId: z.string().max(100).optional().describe("The X-Request-Id of a response"),
    from: time.describe("Only requests from this time on"),
    to: time.describe("Only requests before this time"),
  }),
  response: listOf(LoggedRequest),
});
