import {
  embeddingProviders,
  providers,
  SemanticVersion,
  TimeoutSeconds,
  VARIABLE_NAME,
  visibleText,
} from "@stoa/contract";
import type { JsonSchema } from "@stoa/evaluation/json-schema";
import { z } from "zod";
import { messageRoles } from "../../integrations/ai-providers/ai-provider.ts";
import { findConversationIssues } from "../prompt-template/template.ts";
import { isObject } from "./issue-order.ts";

/**
 * The schema of `workflow/1`; other files check references, cycles, expressions and schemas. Allowing more later breaks no definition,
 * allowing less would.
 */
export const MAX_STEPS = 50;
/** Of a map. */
export const MAX_ITEMS = 200;
/** Nested workflow calls, including the outermost. */
export const MAX_CALL_DEPTH = 3;
const MAX_NAMES = 100;
const MAX_MESSAGES = 50;
const MAX_EXPRESSION_CHARACTERS = 2_048;
const MAX_STEP_SECONDS = 30 * 60;
const MAX_WAIT_SECONDS = 7 * 24 * 3_600;
const MAX_RETRIES = 10;
const MAX_BACKOFF_SECONDS = 3_600;
const MAX_CONCURRENCY = 50;

/** CEL reserves these words: `steps.in.output` would not parse. */
const RESERVED_WORDS = ["true", "false", "null", "in"];

export const StepId = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_]{0,63}$/,
    "must begin with a letter and have at most 64 letters, digits and underscores",
  )
  .refine((id) => !RESERVED_WORDS.includes(id), "is a word of CEL: choose another");
const Expression = z.string().min(1).max(MAX_EXPRESSION_CHARACTERS).describe("CEL");
const Expressions = z
  .record(z.string().regex(VARIABLE_NAME, "must be a name such as topic"), Expression)
  .refine((named) => Object.keys(named).length <= MAX_NAMES, `must have at most ${MAX_NAMES} names`)
  .default({});
// json-schema.ts checks the content.
const Schema = z.custom<JsonSchema>(isObject, "must be a JSON Schema: an object");
const seconds = (max: number) => z.int().min(1).max(max);

const common = {
  when: Expression.optional().describe("The step is skipped, and gives null, where this is false"),
  retry: z
    .strictObject({
      max: z.int().min(0).max(MAX_RETRIES),
      backoffSeconds: z.number().min(0).max(MAX_BACKOFF_SECONDS).default(1),
    })
    .optional(),
  timeoutSeconds: seconds(MAX_STEP_SECONDS).optional(),
  onError: z.enum(["fail", "continue"]).default("fail"),
  output: Schema.optional(),
};
const stepFields = { id: StepId, needs: z.array(z.string()).max(MAX_STEPS).default([]) };

const prompt = {
  type: z.literal("prompt"),
  provider: z.enum(providers),
  model: z.string().trim().min(1).max(200).optional(),
  messages: z
    .array(z.strictObject({ role: z.enum(messageRoles), content: z.string().min(1) }))
    .min(1)
    .max(MAX_MESSAGES)
    .superRefine((messages, { addIssue }) => {
      for (const { path, reason } of findConversationIssues(messages)) {
        addIssue({ code: "custom", path: [...path], message: reason });
      }
    }),
  vars: Expressions,
  options: z
    .strictObject({
      temperature: z.number().min(0).max(2).optional(),
      maxTokens: z.int().min(1).max(1_000_000).optional(),
      timeoutSeconds: TimeoutSeconds.optional(),
    })
    .default({}),
};
const embedding = {
  type: z.literal("embedding"),
  provider: z.enum(embeddingProviders),
  model: z.string().trim().min(1).max(200).optional(),
  text: Expression.describe("Returns a text. Its vector is the output, a list of numbers"),
  compareTo: Expression.optional().describe(
    "Returns a list of texts. The output is then the cosine of the text with each of them, from -1 to 1",
  ),
};
const transform = { type: z.literal("transform"), value: Expression };
const product = {
  type: z.literal("product"),
  productId: z.string().regex(/^prod_[0-7][0-9a-z]{25}$/, "must be the id of a product"),
  version: SemanticVersion.optional(),
  model: z.string().trim().min(1).max(200).optional().describe("Of a prompt, in place of its default model"),
  variables: Expressions,
};

/** Reports the wrong field, not the whole step. */
const byType = (types: string) => ({
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === "invalid_union" ? `must be one of ${types}` : undefined,
});

// No map in a map: both items would be called `item`. No approval: an item has no address to approve. No delay: a delay before or after the
// map does the same.
const ItemStep = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ ...prompt, ...common }),
    z.strictObject({ ...embedding, ...common }),
    z.strictObject({ ...transform, ...common }),
    z.strictObject({ ...product, ...common }),
  ],
  byType("prompt, embedding, transform, product"),
);

const map = {
  type: z.literal("map"),
  items: Expression,
  do: ItemStep,
  maxConcurrency: z.int().min(1).max(MAX_CONCURRENCY).optional(),
};
const approval = {
  type: z.literal("approval"),
  timeoutSeconds: seconds(MAX_WAIT_SECONDS),
  prompt: visibleText(2_000).min(1).optional().describe("The question that the approver sees"),
};
const delay = { type: z.literal("delay"), seconds: seconds(MAX_WAIT_SECONDS) };

const Step = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ ...stepFields, ...common, ...prompt }),
    z.strictObject({ ...stepFields, ...common, ...embedding }),
    z.strictObject({ ...stepFields, ...common, ...transform }),
    z.strictObject({ ...stepFields, ...common, ...map }),
    z.strictObject({ ...stepFields, ...common, ...approval }),
    z.strictObject({ ...stepFields, ...common, ...delay }),
    z.strictObject({ ...stepFields, ...common, ...product }),
  ],
  byType("prompt, embedding, transform, map, approval, delay, product"),
);

export const Workflow = z.strictObject({
  format: z.literal("workflow/1"),
  input: Schema,
  steps: z.array(Step).min(1).max(MAX_STEPS),
  result: Expression,
});

export type Workflow = z.output<typeof Workflow>;
