import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";

const params = z.object({ productId: z.string() });

const usd = (most: number) => z.number().min(0.01).multipleOf(0.01, "has more decimals than USD").max(most);

const settings = {
  maxCost: usd(10_000).describe("USD of one repeated evaluation"),
  monthlyBudget: usd(100_000).describe(
    "USD of all repeated evaluations that start in a calendar month (UTC); at least maxCost. A running one counts with its whole maxCost",
  ),
};

export const SetReEvaluation = z.strictObject(settings).meta({ id: "SetReEvaluation" });

export const ReEvaluation = z
  .object({
    maxCost: settings.maxCost.nullable().describe("USD of one repeated evaluation; null: none is repeated"),
    monthlyBudget: settings.monthlyBudget.nullable(),
    intervalDays: z
      .int()
      .nullable()
      .describe("The operator's schedule: days after which an evaluation is repeated; null: none"),
    used: z
      .object({ evaluations: z.int(), cost: z.number().describe("USD") })
      .describe("In this month (UTC)"),
    paused: z
      .object({
        code: z.string().describe("A code of this API, such as PROVIDER_KEY_NOT_FOUND"),
        evaluationId: z.string().describe("The evaluation that cannot be repeated"),
        at: Timestamp,
      })
      .nullable()
      .describe("Set when the evaluation cannot be repeated. Evaluate again, or send these settings again"),
    updatedAt: Timestamp.nullable(),
  })
  .meta({ id: "ReEvaluation", description: "The limits within which the service repeats evaluations." });

export type SetReEvaluation = z.output<typeof SetReEvaluation>;
export type ReEvaluation = z.input<typeof ReEvaluation>;

const tag = "evaluations";
/** As for everything that spends money on a provider key. */
const access = { who: "member", permission: "ai:execute" } as const;

export const get = endpoint({
  name: "reEvaluations.get",
  tag,
  method: "GET",
  path: "/products/:productId/re-evaluation",
  summary: "Read within which limits a product is evaluated again, and what that cost",
  access,
  params,
  response: one(ReEvaluation),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const set = endpoint({
  name: "reEvaluations.set",
  tag,
  method: "PUT",
  path: "/products/:productId/re-evaluation",
  summary: "Let the service repeat the evaluation of a product on your provider keys",
  description:
    "The service repeats the newest completed evaluation of the version on sale, with its test set, models, keys and repeats. Reasons are a model that the price list calls deprecated, a changed price, and the schedule of the operator. No call starts that is expected to exceed `maxCost` or the rest of `monthlyBudget`; calls that are open then can end above it. No key costs more than its own budget.",
  access,
  params,
  request: json(SetReEvaluation, { maxCost: 0.5, monthlyBudget: 2 }),
  response: one(ReEvaluation),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const turnOff = endpoint({
  name: "reEvaluations.delete",
  tag,
  method: "DELETE",
  path: "/products/:productId/re-evaluation",
  summary: "Stop repeating the evaluations of a product",
  description: "One that runs continues; cancel it by its id.",
  access,
  params,
  response: one(z.object({ productId: z.string(), deleted: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});
