import { z } from "zod";
import { CreateProduct } from "../catalog/products.ts";
import { endpoint, json, listOf, one } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";

export const executionStatuses = ["queued", "running", "waiting", "completed", "failed", "canceled"] as const;
export const executionTypes = ["PROMPT", "WORKFLOW"] as const;
const Mode = z
  .enum(["sync", "async", "stream"])
  .describe("How it was requested: with a direct response, in the background, or as a stream");

export const Usage = z
  .object({
    promptTokens: z.int(),
    completionTokens: z.int(),
    totalTokens: z.int(),
    estimatedCost: z.number().describe("USD"),
    costKnown: z.boolean().describe("false: no price is known for this model, and estimatedCost is 0"),
    estimated: z.boolean().describe("true: the provider did not count, and the tokens are our estimate"),
  })
  .meta({ id: "Usage" });

const metadata = z.object({
  model: z.string(),
  duration: z.number().describe("Seconds"),
  provider: z.string(),
  finishReason: z.string(),
  attempts: z.int(),
  productVersion: z.string(),
  mode: Mode,
});

export const ExecutionResult = z
  .object({ executionId: z.string(), output: z.string(), usage: Usage, metadata })
  .meta({ id: "ExecutionResult" });

/** The data of 202: where to find the execution that continues in the background. */
export const AcceptedExecution = z
  .object({
    executionId: z.string(),
    status: z.enum(executionStatuses),
    statusUrl: z.string().describe("Returns the status and the result"),
    eventsUrl: z.string().describe("Streams the events of the run, during it and afterwards"),
    createdAt: Timestamp,
  })
  .meta({ id: "AcceptedExecution" });

/** USD, at the providers' list prices. */
export const CostLimit = z.number().min(0.00000001).max(1_000_000);

/** Of one provider call. */
export const TimeoutSeconds = z
  .int()
  .min(1)
  .max(1_800)
  .describe(
    "The provider's time limit in total, with retries. Default: 600 seconds in total and 300 of silence. If you set it, silence has no other limit",
  );

export const PromptDraft = CreateProduct.pick({ content: true, contentFormat: true, variables: true }).meta({
  id: "PromptDraft",
  description: "Content that its author tries out before it becomes a version of the product.",
});
export const draftToRun = PromptDraft.optional().describe(
  "For the author of a prompt: run this content in place of the stored one, without saving it. Not with options.version. productVersion of the run ends with -draft, and it cannot become a sample of the product",
);

export const Execute = z
  .strictObject({
    productId: z.string().min(1).max(100),
    apiKeyId: z
      .string()
      .min(1)
      .max(100)
      .describe(
        "The id of your stored provider key, or sandbox, which calls no model and accepts any model name",
      ),
    // Problems of variables are 422 and name each variable, so the schema only requires an object.
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ type: "object", additionalProperties: { type: "string" } })
      .describe("Values by variable name; each a string of at most 32 KiB"),
    draft: draftToRun,
    stream: z.boolean().default(false).describe("true: respond with events, like Accept: text/event-stream"),
    options: z
      .strictObject({
        model: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe(
            "The provider's name of a model. Default: the product's model, then the provider's default",
          ),
        temperature: z.number().min(0).max(2).optional(),
        maxTokens: z
          .int()
          .min(1)
          .max(1_000_000)
          .optional()
          .describe("The maximum number of tokens in the answer"),
        version: z.string().max(40).optional().describe("A version that you may run"),
        store: z.boolean().default(true).describe("false: store neither variables nor output"),
        timeoutSeconds: TimeoutSeconds.optional(),
        maxCost: CostLimit.optional().describe(
          "USD, at the provider's list price. The service lowers maxTokens until the run cannot cost more. If nothing is left for an answer, or no price is known, it makes no call",
        ),
      })
      .default({ store: true }),
  })
  .meta({ id: "Execute" });

export const Execution = z
  .object({
    id: z.string(),
    type: z.enum(executionTypes),
    mode: Mode,
    status: z.enum(executionStatuses),
    productId: z.string(),
    productVersion: z.string().describe("It ends with -draft where its author tried out what is not saved"),
    provider: z.string().nullable().describe("null: a workflow, whose steps have their own providers"),
    model: z.string().nullable(),
    usage: Usage.nullable(),
    duration: z.number().nullable().describe("Seconds"),
    error: z
      .object({
        code: z
          .string()
          .describe(
            "A code of this API, or canceled, client_gone, shutdown, account_banned, account_closed; for a workflow, that of its step",
          ),
        message: z.string(),
      })
      .nullable(),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
    cancelRequestedAt: Timestamp.nullable(),
  })
  .meta({ id: "Execution" });

const ExecutionShare = z
  .object({
    url: z.string().describe("The public page of the run"),
    createdAt: Timestamp,
  })
  .meta({ id: "ExecutionShare" });

export const ExecutionDetail = Execution.extend({
  variables: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("A prompt's variables or a workflow's input; null if not stored or older than 30 days"),
  output: z
    .unknown()
    .describe(
      "A prompt's text or a workflow's result; null if there is none or it is not stored. For a run that failed, the output so far",
    ),
  finishReason: z.string().nullable(),
  attempts: z.int(),
  share: ExecutionShare.nullable().describe("The public link; null: it is not shared"),
}).meta({ id: "ExecutionDetail" });

export const SharedRun = z
  .object({
    type: z.enum(executionTypes),
    product: z.object({
      id: z.string(),
      title: z.string(),
      onSale: z.boolean().describe("Whether everybody can read it"),
    }),
    version: z.string().describe("Of the product"),
    provider: z.string().nullable().describe("null: a workflow, whose steps have their own providers"),
    model: z.string().nullable(),
    input: z.record(z.string(), z.unknown()).describe("A prompt's variables or a workflow's input"),
    output: z.unknown().describe("A prompt's text or a workflow's result"),
    usage: Usage.nullable(),
    createdAt: Timestamp,
  })
  .meta({ id: "SharedRun", description: "What everybody who has the link sees of a run." });

export type ProductRuns = z.input<typeof ProductRuns>;
export type ProductRunCounts = z.input<typeof ProductRunCounts>;
export type SaleRuns = z.input<typeof SaleRuns>;
export type AcceptedExecution = z.input<typeof AcceptedExecution>;
export type PromptDraft = z.output<typeof PromptDraft>;
export type Execute = z.output<typeof Execute>;
export type ExecutionResult = z.input<typeof ExecutionResult>;
export type Execution = z.input<typeof Execution>;
export type ExecutionDetail = z.input<typeof ExecutionDetail>;
export type ExecutionShare = z.input<typeof ExecutionShare>;
export type SharedRun = z.input<typeof SharedRun>;

const access = { who: "member", permission: "ai:execute" } as const;

export const execute = endpoint({
  name: "ai.execute",
  method: "POST",
  path: "/ai/execute",
  summary: "Run a prompt that you bought with your own provider key",
  description:
    "Responds when the run has ended. With `stream: true` or `Accept: text/event-stream` it responds with events: `execution.started`, `output.delta` ({text}), and last either `execution.completed` (the whole result) or `execution.failed` (the error, as in the envelope). A stream without one of these two was cut off.\n\nThe status line waits for the first part of the output, at most 20 seconds; an error before that is a normal error response. The id of an event is the length of the output up to it. Send it as `Last-Event-ID` to `GET /ai/executions/{executionId}/events` to continue.\n\nIf the client disconnects, or reads nothing for 30 seconds, the run is canceled, unless the request had an `Idempotency-Key`. `concurrentRuns` of the plan limits how many prompts an account runs at the same time in each process of the service; one more is 429. If the process has no memory for another answer, the run is refused with 503. An answer that outgrows the memory fails with 503 and `details.reason` `memory_full`. With `Prefer: respond-async` it returns 202, and the run continues in the background.",
  access,
  request: json(Execute, {
    productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p",
    apiKeyId: "sandbox",
    variables: { topic: "autumn" },
    options: { temperature: 0.7 },
  }),
  response: one(ExecutionResult, {
    accepted: { kind: "background", data: AcceptedExecution },
    canStream: true,
  }),
  errors: [
    "PRODUCT_NOT_FOUND",
    "PRODUCT_UNAVAILABLE",
    "INVALID_STATE",
    "EXECUTION_NOT_FOUND",
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
    "PROVIDER_UNAVAILABLE",
    "PROVIDER_TIMEOUT",
  ],
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
    status: filter(z.enum(executionStatuses)),
    productId: filter(z.string().max(100)),
    type: filter(z.string().max(40).toUpperCase()),
    mode: filter(Mode, "How it was requested: with a direct response, in the background, or as a stream"),
    from: z.iso.datetime({ offset: true }).optional().describe("From this time, inclusive"),
    to: z.iso.datetime({ offset: true }).optional().describe("Until this time, exclusive"),
  }),
  response: listOf(Execution),
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
  response: one(ExecutionDetail),
  errors: ["EXECUTION_NOT_FOUND"],
});

export const deleteExecution = endpoint({
  name: "ai.executions.delete",
  tag: "ai",
  method: "DELETE",
  path: "/ai/executions/:executionId",
  summary: "Delete an execution from your history",
  access,
  params: executionParams,
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE"],
});

export const shareExecution = endpoint({
  name: "ai.executions.share",
  tag: "ai",
  method: "POST",
  path: "/ai/executions/:executionId/share",
  summary: "Share a run by a public link",
  description:
    "Everybody who has the link reads input, output, model, cost, product and version of a completed run, without your name. A second request returns the same link. It ends with `DELETE`, when the run is deleted, 30 days after the run, when your account closes, and while the product is suspended as malicious or illegal. A run of `sandbox-echo` cannot be shared, since its output is the product's text.",
  access,
  params: executionParams,
  response: one(ExecutionShare),
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR", "PRODUCT_UNAVAILABLE"],
});

export const unshareExecution = endpoint({
  name: "ai.executions.unshare",
  tag: "ai",
  method: "DELETE",
  path: "/ai/executions/:executionId/share",
  summary: "End the public link to a run",
  description: "Succeeds too if there is none. A later link is another one.",
  access,
  params: executionParams,
  response: one(z.object({ executionId: z.string(), shared: z.literal(false) })),
  errors: ["EXECUTION_NOT_FOUND"],
});

export const sharedRun = endpoint({
  name: "sharedRuns.get",
  tag: "ai",
  method: "GET",
  path: "/shared-runs/:token",
  summary: "Read a run that its owner shares",
  description: "The token is the end of the link.",
  access: { who: "visitor", permission: null },
  params: z.object({ token: z.string() }),
  hasSecretPath: true,
  response: one(SharedRun),
  errors: ["SHARED_RUN_NOT_FOUND"],
});

export const executionEvents = endpoint({
  name: "ai.executions.events",
  tag: "ai",
  method: "GET",
  path: "/ai/executions/:executionId/events",
  summary: "Stream the events of an execution, during it and afterwards",
  description:
    "The events of a streamed run, however it was started, from the beginning or after `Last-Event-ID`. Clients that cannot set a header send `lastEventId`.\n\nFor a prompt, the id is the length of the output so far in UTF-16 units; the last event has `end`. A workflow sends `execution.queued`, `.started`, `.waiting` and `.running`. It also sends `step.started`, `.waiting`, `.retrying`, `.completed`, `.skipped`, `.failed` and `.canceled` ({stepId, index, type, status, attempt}). Its ids count from 1.\n\nExactly one event ends the stream, with the whole result: `execution.completed` or `execution.failed`, for a workflow also `execution.canceled`. If the output is not stored (`store: false`, or older than 30 days), it is null in the last event, and there is no `output.delta`.\n\nA comment comes every 15 seconds. A client that reads nothing for 30 seconds is disconnected, and can reconnect with the last id.",
  access,
  params: executionParams,
  query: z.strictObject({
    lastEventId: z.string().max(100).optional().describe("In place of the header Last-Event-ID"),
  }),
  response: { kind: "events", data: z.unknown() },
  errors: ["EXECUTION_NOT_FOUND"],
});

export const cancelExecution = endpoint({
  name: "ai.executions.cancel",
  tag: "ai",
  method: "POST",
  path: "/ai/executions/:executionId/cancel",
  summary: "Cancel an execution",
  description:
    "The provider call is aborted within a second, in any process. The output so far is stored, and its tokens are estimated. A second request does no harm; an execution that ended otherwise is 409.",
  access,
  params: executionParams,
  response: one(Execution),
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE"],
});

export const ProductRuns = z
  .object({
    total: z.int().describe("By buyers; your own runs do not count"),
    completed: z.int(),
    failed: z.int(),
    canceled: z.int(),
    buyers: z.int().describe("Number of accounts with a run"),
    last30Days: z.int(),
  })
  .meta({ id: "ProductRuns" });

const failures = z
  .array(z.object({ code: z.string(), runs: z.int() }))
  .describe("The failed runs by error code, the most frequent first");

export const ProductRunCounts = ProductRuns.extend({
  product: z.object({ id: z.string(), title: z.string(), type: z.string() }),
  failed30Days: z.int().describe("Of last30Days"),
  failures30Days: failures,
}).meta({ id: "ProductRunCounts" });

export const SaleRuns = z
  .object({
    total: z.int(),
    completed: z.int(),
    failed: z.int(),
    canceled: z.int(),
    lastAt: Timestamp.nullable(),
    failures,
  })
  .meta({ id: "SaleRuns" });

export const runCounts = endpoint({
  name: "products.runCounts",
  method: "GET",
  path: "/products/runs",
  summary: "Read how often each of your products was run",
  description: "Products that buyers have run: only numbers, never variables or outputs.",
  access: { who: "member", permission: "products:read" },
  query: z.strictObject({
    ...paging,
    productIds: z.string().max(5_000).optional().describe("Only these ids, separated by commas"),
    sort: z
      .enum(["runs", "failures"])
      .default("runs")
      .describe("The most runs, or the most failed runs, of the last 30 days first"),
  }),
  response: listOf(ProductRunCounts),
});

export const saleRuns = endpoint({
  name: "sales.runs",
  method: "GET",
  path: "/sales/:orderId/runs",
  summary: "Read how often a buyer ran your product since the purchase",
  description: "For its seller: only numbers, never variables or outputs.",
  access: { who: "member", permission: "purchases:read", rolePermission: "manage:products" },
  params: z.object({ orderId: z.string() }),
  response: one(SaleRuns),
  errors: ["ORDER_NOT_FOUND"],
});

export const productRuns = endpoint({
  name: "ai.productRuns",
  method: "GET",
  path: "/products/:productId/runs",
  summary: "Read how often your product was run",
  description: "For its author and administrators: only numbers, never variables or outputs.",
  access: { who: "member", permission: "products:read" },
  params: z.object({ productId: z.string() }),
  response: one(ProductRuns),
  errors: ["PRODUCT_NOT_FOUND"],
});
