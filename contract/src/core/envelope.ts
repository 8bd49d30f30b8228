import { z } from "zod";
import type { ErrorCode } from "./errors.ts";

/** ISO 8601 in UTC with milliseconds and `Z`. */
export const Timestamp = z.iso.datetime({ precision: 3 }).describe("ISO 8601, UTC, milliseconds");

export const Meta = z
  .object({ timestamp: Timestamp, request_id: z.string().describe("Also in the X-Request-Id header") })
  .meta({ id: "Meta" });

export const Ratings = z
  .object({
    average: z.number().min(0).max(5).describe("Two decimals; 0 without reviews"),
    count: z.int().min(0),
    stars: z.object({ 1: z.int(), 2: z.int(), 3: z.int(), 4: z.int(), 5: z.int() }),
  })
  .meta({ id: "Ratings" });

export const ListMeta = Meta.extend({
  page: z.int().min(1),
  limit: z.int().min(1).max(100),
  total: z.int().min(0).describe("Exact, or a lower bound if totalIsEstimate is true"),
  totalIsEstimate: z.literal(true).optional(),
  correctedSearch: z
    .string()
    .optional()
    .describe("The corrected search that was used in place of the one sent"),
  ratings: Ratings.optional().describe("For lists of reviews: the ratings of all reviews of the product"),
  unreadCount: z
    .int()
    .min(0)
    .optional()
    .describe("For lists of notifications: how many are unread, exact up to 10,000"),
  sum: z
    .number()
    .optional()
    .describe("For entries of analytics: the sum of all of them, in the unit of their currency"),
}).meta({ id: "ListMeta" });

export const FieldProblem = z
  .object({
    field: z.string(),
    reason: z.string(),
    line: z.int().min(1).optional().describe("The line in an imported file"),
    file: z.string().optional().describe("The file in an imported folder"),
  })
  .meta({ id: "FieldProblem" });

export const Failure = z
  .object({
    success: z.literal(false),
    error: z.object({
      code: z.string(),
      message: z.string(),
      details: z
        .looseObject({
          field: z.string().optional(),
          reason: z.string().optional(),
          errors: z.array(FieldProblem).optional(),
          total: z
            .int()
            .optional()
            .describe("For an import: the number of all problems; `errors` has the first 100"),
        })
        .optional(),
      docUrl: z.string(),
    }),
    meta: Meta,
  })
  .meta({ id: "Failure", description: "Every error of the service has this shape." });

export type Meta = z.infer<typeof Meta>;
export type Ratings = z.infer<typeof Ratings>;
export type ListMeta = z.infer<typeof ListMeta>;
export type Success<D> = { success: true; data: D; meta: Meta | ListMeta };
export type Failure = {
  success: false;
  error: { code: ErrorCode; message: string; details?: Record<string, unknown>; docUrl: string };
  meta: Meta;
};

const DECIMAL = /^-?\d{1,15}(\.\d{1,10})?$/;

/** A number in a query or path, which arrives as text; `inner` limits it. */
export const queryNumber = <T extends z.ZodType<number, number>>(inner: T) =>
  z.string().regex(DECIMAL, "must be a number").transform(Number).pipe(inner);

export const queryFlag = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true")
  .pipe(z.boolean());

const filters = z.registry<{ isFilter: true }>();

/** An optional filter. `all`, in any case, means no filter. */
export function filter<T extends z.ZodType>(schema: T, description?: string): z.ZodOptional<T> {
  const optional = schema.optional();
  const described = description === undefined ? optional : optional.describe(description);
  filters.add(described, { isFilter: true });
  return described;
}

export const isFilter = (schema: z.ZodType): boolean => filters.has(schema);

/** The paging of every list. */
export const paging = {
  page: queryNumber(z.int().min(1).max(1_000_000)).default(1).describe("Page number, from 1"),
  limit: queryNumber(z.int().min(1).max(100)).default(20).describe("Items per page"),
};

/** Money in the API: a JSON number with the currency's decimals. */
export const Amount = z.number().min(0).describe("In the unit of the currency, with its decimals: 19.99");
export const Currency = z
  .string()
  .regex(/^[A-Z]{3}$/, "must be an ISO 4217 code such as USD")
  .describe("ISO 4217");
/** In a query, where enumerated values may have any case. */
export const QueryCurrency = z
  .string()
  .toUpperCase()
  .regex(/^[A-Z]{3}$/, "must be an ISO 4217 code such as USD")
  .describe("ISO 4217");
