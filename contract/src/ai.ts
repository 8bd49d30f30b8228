import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { paging, Timestamp } from "./envelope.ts";
import { Provider } from "./providers.ts";

export const executionStatuses = ["queued", "running", "waiting", "completed", "failed", "canceled"] as const;

const Usage = z
  .object({
    promptTokens: z.int(),
    completionTokens: z.int(),
    totalTokens: z.int(),
    estimatedCost: z.number().describe("USD"),
    costKnown: z.boolean().describe("false: no price is kept for this model, and estimatedCost is 0"),
  })
  .meta({ id: "Usage" });

const metadata = z.object({
  model: z.string(),
  duration: z.number().describe("Seconds"),
  provider: z.string(),
  finishReason: z.string(),
  attempts: z.int(),
  productVersion: z.string(),
  mode: z.enum(["sync", "async", "stream"]),
});

export const ExecutionResult = z
  .object({ executionId: z.string(), output: z.string(), usage: Usage, metadata })
  .meta({ id: "ExecutionResult" });

export const Execute = z
  .strictObject({
    productId: z.string().min(1).max(100),
    apiKeyId: z.string().min(1).max(100).describe("The id of your stored provider key, or sandbox"),
    // Faults inside are a rule's (422, every variable named), so the schema asks for an object alone.
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ type: "object", additionalProperties: { type: "string" } })
      .describe("Values by variable name; each a string of at most 32 KiB"),
    options: z
      .strictObject({
        model: z.string().min(1).max(200).optional(),
        temperature: z.number().min(0).max(2).optional(),
        maxTokens: z.int().min(1).max(1_000_000).optional(),
        version: z.string().max(40).optional().describe("Pin a version that you are entitled to"),
        store: z.boolean().default(true).describe("false: keep neither variables nor output"),
      })
      .default({ store: true }),
  })
  .meta({ id: "Execute" });

export const Execution = z
  .object({
    id: z.string(),
    type: z.literal("PROMPT"),
    status: z.enum(executionStatuses),
    productId: z.string(),
    productVersion: z.string(),
    provider: z.string(),
    model: z.string().nullable(),
    usage: Usage.nullable(),
    duration: z.number().nullable().describe("Seconds"),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "Execution" });

export const ExecutionDetail = Execution.extend({
  variables: z.record(z.string(), z.string()).nullable().describe("null when not stored or past 30 days"),
  output: z.string().nullable(),
  finishReason: z.string().nullable(),
  attempts: z.int(),
}).meta({ id: "ExecutionDetail" });

export type Execute = z.output<typeof Execute>;
export type ExecutionResult = z.input<typeof ExecutionResult>;
export type Execution = z.input<typeof Execution>;
export type ExecutionDetail = z.input<typeof ExecutionDetail>;

const access = { who: "member", permission: "ai:execute" } as const;

export const execute = endpoint({
  name: "ai.execute",
  method: "POST",
  path: "/ai/execute",
  summary: "Run a prompt that you bought with your own provider key",
  access,
  body: Execute,
  data: ExecutionResult,
  errors: [
    "PRODUCT_NOT_FOUND",
    "PRODUCT_UNAVAILABLE",
    "PROVIDER_KEY_NOT_FOUND",
    "VALIDATION_ERROR",
    "PROVIDER_NOT_SUPPORTED",
    "CONTENT_FILTERED",
    "CONTEXT_LENGTH_EXCEEDED",
    "PROVIDER_KEY_INVALID",
    "PROVIDER_PERMISSION_DENIED",
    "PROVIDER_QUOTA_EXHAUSTED",
    "PROVIDER_RATE_LIMITED",
    "KEY_BUDGET_EXCEEDED",
    "KEY_CONCURRENCY_LIMIT",
    "PROVIDER_ERROR",
    "PROVIDER_BAD_RESPONSE",
    "PROVIDER_TIMEOUT",
  ],
  example: {
    productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p",
    apiKeyId: "sandbox",
    variables: { topic: "autumn" },
    options: { temperature: 0.7 },
  },
});

export const executions = endpoint({
  name: "ai.executions.list",
  tag: "ai",
  method: "GET",
  path: "/ai/executions",
  summary: "List your executions, newest first",
  access,
  query: z.strictObject({
    ...paging,
    status: z.enum(executionStatuses).optional(),
    productId: z.string().max(100).optional(),
    type: z.string().max(40).toUpperCase().optional(),
    from: z.iso.datetime({ offset: true }).optional(),
    to: z.iso.datetime({ offset: true }).optional(),
  }),
  data: Execution,
  list: true,
});

const executionParams = z.object({ executionId: z.string() });

export const execution = endpoint({
  name: "ai.executions.get",
  tag: "ai",
  method: "GET",
  path: "/ai/executions/:executionId",
  summary: "Read one execution",
  access,
  params: executionParams,
  data: ExecutionDetail,
  errors: ["EXECUTION_NOT_FOUND"],
});

export const removeExecution = endpoint({
  name: "ai.executions.delete",
  tag: "ai",
  method: "DELETE",
  path: "/ai/executions/:executionId",
  summary: "Delete an execution from your history",
  access,
  params: executionParams,
  data: z.object({ id: z.string(), deleted: z.literal(true) }),
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE"],
});

const limits = {
  monthlyBudget: z
    .number()
    .min(0.01)
    .multipleOf(0.01, "has more decimals than USD")
    .max(1_000_000)
    .nullable()
    .describe("USD a calendar month (UTC), by our estimate"),
  maxConcurrency: z.int().min(1).max(100).nullable().describe("Calls at the same time"),
};

export const ProviderKey = z
  .object({
    id: z.string(),
    provider: Provider,
    name: z.string(),
    last4: z.string().describe("The last four characters of the key: all of it that can be read again"),
    baseUrl: z.string().nullable(),
    status: z
      .enum(["unverified", "valid", "invalid"])
      .describe(
        "What the provider said of the key when it was last asked or called; unverified: nothing yet",
      ),
    ...limits,
    createdAt: Timestamp,
    lastUsedAt: Timestamp.nullable(),
  })
  .meta({ id: "ProviderKey" });

const secret = z
  .string()
  .trim()
  .min(1)
  .max(1_000)
  .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without spaces")
  .describe("Write-only");
const baseUrl = z.string().max(2_048).describe("Only for openai-compatible and ollama");

export const CreateProviderKey = z
  .strictObject({
    provider: Provider.exclude(["sandbox"]),
    name: z.string().trim().min(1).max(100),
    key: secret,
    baseUrl: baseUrl.optional(),
    monthlyBudget: limits.monthlyBudget.optional(),
    maxConcurrency: limits.maxConcurrency.optional(),
  })
  .meta({ id: "CreateProviderKey" });

export const ChangeProviderKey = z
  .strictObject({
    name: z.string().trim().min(1).max(100),
    key: secret,
    baseUrl,
    ...limits,
  })
  .partial()
  .meta({ id: "ChangeProviderKey" });

export type ProviderKey = z.input<typeof ProviderKey>;
export type CreateProviderKey = z.output<typeof CreateProviderKey>;
export type ChangeProviderKey = z.output<typeof ChangeProviderKey>;

const keyParams = z.object({ providerKeyId: z.string() });

export const keys = endpoint({
  name: "ai.keys.list",
  tag: "ai",
  method: "GET",
  path: "/ai/keys",
  summary: "List your provider keys",
  access,
  query: z.strictObject(paging),
  data: ProviderKey,
  list: true,
});

export const createKey = endpoint({
  name: "ai.keys.create",
  tag: "ai",
  method: "POST",
  path: "/ai/keys",
  summary: "Store a provider key",
  description:
    "It is sealed before it is written, and never shown again but for its last four characters. The provider is asked whether it takes the key, which spends no tokens: `status` is `invalid` where it says no, and `unverified` where it says nothing within 5 seconds. The key is stored in any case.",
  access,
  body: CreateProviderKey,
  data: ProviderKey,
  status: 201,
  example: { provider: "openai", name: "My key", key: "sk-…".replace("…", "example") },
});

export const changeKey = endpoint({
  name: "ai.keys.change",
  tag: "ai",
  method: "PATCH",
  path: "/ai/keys/:providerKeyId",
  summary: "Change a provider key",
  description: "A new `key` is asked about like one that is stored anew. A new `baseUrl` needs a new `key`.",
  access,
  params: keyParams,
  body: ChangeProviderKey,
  data: ProviderKey,
  errors: ["PROVIDER_KEY_NOT_FOUND"],
  example: { name: "My key for prompts", monthlyBudget: 20 },
});

export const removeKey = endpoint({
  name: "ai.keys.delete",
  tag: "ai",
  method: "DELETE",
  path: "/ai/keys/:providerKeyId",
  summary: "Forget a provider key",
  access,
  params: keyParams,
  data: z.object({ id: z.string(), deleted: z.literal(true) }),
  errors: ["PROVIDER_KEY_NOT_FOUND"],
});

export const verifyKey = endpoint({
  name: "ai.keys.verify",
  tag: "ai",
  method: "POST",
  path: "/ai/keys/:providerKeyId/verify",
  summary: "Ask the provider whether it takes a stored key",
  access,
  params: keyParams,
  data: ProviderKey,
  errors: ["PROVIDER_KEY_NOT_FOUND", "PROVIDER_ERROR", "PROVIDER_TIMEOUT", "PROVIDER_RATE_LIMITED"],
});
