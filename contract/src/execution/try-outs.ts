import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";
import { Provider } from "../core/providers.ts";

const params = z.object({ productId: z.string() });

/** In total: the seller pays for what visitors send. */
export const MAX_TRY_OUT_CHARACTERS = 8_000;
/** A longer prompt cannot be tried: each output is compared with all of it. */
export const MAX_TRY_OUT_CONTENT = 20_000;

const settings = {
  model: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .describe("The provider's name of a model; null: the product's model, then the provider's default"),
  maxPerDay: z.int().min(1).max(10_000).describe("Tries of all visitors in a day (UTC)"),
  maxPerVisitorPerDay: z
    .int()
    .min(1)
    .max(100)
    .describe("Tries of one visitor in a day. Guests of one network together have five times as many"),
  monthlyBudget: z
    .number()
    .min(0.01)
    .multipleOf(0.01, "has more decimals than USD")
    .max(100_000)
    .describe(
      "USD in a calendar month (UTC), at list prices. A try reserves its highest possible cost until it ends. Models without a known price cost nothing here",
    ),
  maxOutputTokens: z.int().min(16).max(4_000).describe("The maximum number of tokens in an answer"),
};

const apiKeyId = z
  .string()
  .min(1)
  .max(100)
  .describe(
    "Your stored provider key that pays for the tries. In test environments also sandbox, which calls no model",
  );

export const SetTryOut = z
  .strictObject({
    apiKeyId,
    model: settings.model.default(null),
    maxPerDay: settings.maxPerDay,
    maxPerVisitorPerDay: settings.maxPerVisitorPerDay.default(3),
    monthlyBudget: settings.monthlyBudget,
    maxOutputTokens: settings.maxOutputTokens.default(400),
  })
  .meta({ id: "SetTryOut" });

export const TryOut = z
  .object({
    apiKeyId,
    provider: Provider.describe("Of the key"),
    isKeyStored: z
      .boolean()
      .describe("false: the key was deleted, so the product cannot be tried until you choose another one"),
    ...settings,
    used: z
      .object({
        today: z.object({
          tries: z.int().describe("Those that were started, whatever came of them"),
          completed: z.int(),
          withheld: z.int().describe("Their answers repeated the prompt, and no visitor got them"),
          failed: z.int(),
        }),
        month: z.object({ tries: z.int(), cost: z.number().describe("USD") }),
        lastFailure: z
          .object({ code: z.string().describe("A code of this API"), at: Timestamp })
          .nullable()
          .describe("In the last 62 days"),
      })
      .describe("Days and months are in UTC"),
    updatedAt: Timestamp,
  })
  .meta({ id: "TryOut", description: "The conditions under which visitors may try a product." });

export const Try = z
  .strictObject({
    // Problems of variables are 422 and name each variable, so the schema only requires an object.
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ type: "object", additionalProperties: { type: "string" } })
      .describe(
        `Values by variable name; together at most ${MAX_TRY_OUT_CHARACTERS.toLocaleString("en")} characters`,
      ),
    captcha: z
      .string()
      .min(1)
      .max(4_096)
      .optional()
      .describe(
        "The token of a solved captcha. Guests need one if tryOut.captcha of the product is not null",
      ),
    stream: z.boolean().default(false).describe("true: respond with events, like Accept: text/event-stream"),
  })
  .meta({ id: "Try" });

export const TryResult = z
  .object({
    output: z.string().nullable().describe("null: withheld"),
    withheld: z
      .boolean()
      .describe("true: the answer repeated the hidden prompt, so you do not get it. Change your variables"),
    isCut: z.boolean().describe("true: the answer reached the limit of a try"),
    model: z.string(),
    duration: z.number().describe("Seconds"),
    triesLeft: z.int().describe("How often you may try this product again today (UTC)"),
  })
  .meta({ id: "TryResult" });

export type SetTryOut = z.output<typeof SetTryOut>;
export type TryOut = z.input<typeof TryOut>;
export type Try = z.output<typeof Try>;
export type TryResult = z.input<typeof TryResult>;

const example = {
  apiKeyId: "pkey_01k3h4vd3hfk9sezwq2x5c7d8a",
  maxPerDay: 200,
  monthlyBudget: 5,
};

/** As for everything that spends money on a provider key. */
const access = { who: "member", permission: "ai:execute" } as const;

export const get = endpoint({
  name: "tryOuts.get",
  tag: "products",
  method: "GET",
  path: "/products/:productId/try-out",
  summary: "Read how visitors may try your product, and what they used",
  access,
  params,
  response: one(TryOut),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});

export const set = endpoint({
  name: "tryOuts.set",
  tag: "products",
  method: "PUT",
  path: "/products/:productId/try-out",
  summary: "Let visitors try your prompt on your provider key",
  description:
    "Visitors send variables and get the answer of the model, never the prompt. Answers that repeat the prompt are withheld. The limits are exact: a try that would exceed one is refused before the provider is called. A workflow, or a prompt above 20,000 characters, cannot be tried.",
  access,
  params,
  request: json(SetTryOut, example),
  response: one(TryOut),
  errors: [
    "PRODUCT_NOT_FOUND",
    "PROVIDER_KEY_NOT_FOUND",
    "PROVIDER_NOT_SUPPORTED",
    "VALIDATION_ERROR",
    "INVALID_STATE",
  ],
});

export const turnOff = endpoint({
  name: "tryOuts.delete",
  tag: "products",
  method: "DELETE",
  path: "/products/:productId/try-out",
  summary: "Turn off the try-out of a product",
  access,
  params,
  response: one(z.object({ productId: z.string(), deleted: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});

export const run = endpoint({
  name: "tryOuts.run",
  tag: "products",
  method: "POST",
  path: "/products/:productId/try",
  summary: "Try a product before you buy it",
  description:
    "Runs the prompt on the seller's key. `tryOut` of the product shows whether that is possible. You get the answer alone. As a stream, `output.delta` has `text`, and the last event is `try.completed` or `try.withheld` with the fields of the JSON answer without `output`, or `try.failed` with `error`. After `try.withheld`, discard the text. 429 names in `details.limit` which limit is reached: visitor, day or month.",
  access: { who: "visitor", permission: "products:read" },
  params,
  request: json(Try, { variables: { topic: "rain" } }),
  response: one(TryResult, { canStream: true }),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR", "INVALID_STATE", "CONTENT_FILTERED"],
});
