import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";

export const executionStatuses = ["queued", "running", "waiting", "completed", "failed", "canceled"] as const;
export const executionTypes = ["PROMPT", "WORKFLOW"] as const;
const Mode = z
  .enum(["sync", "async", "stream"])
  .describe("How it was asked for: answered at once, by 202, or as a stream");

export const Usage = z
  .object({
    promptTokens: z.int(),
    completionTokens: z.int(),
    totalTokens: z.int(),
    estimatedCost: z.number().describe("USD"),
    costKnown: z.boolean().describe("false: no price is kept for this model, and estimatedCost is 0"),
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

/** What 202 answers: where to look for the execution that goes on without its caller. */
export const AcceptedExecution = z
  .object({
    executionId: z.string(),
    status: z.enum(executionStatuses),
    statusUrl: z.string().describe("Returns the status and the result"),
    eventsUrl: z.string().describe("Streams the events of the run, during it and afterwards"),
    createdAt: Timestamp,
  })
  .meta({ id: "AcceptedExecution" });

/** USD, at the list prices of providers. */
export const CostLimit = z.number().min(0.00000001).max(1_000_000);

/** Of a call of a provider. */
export const TimeoutSeconds = z
  .int()
  .min(1)
  .max(1_800)
  .describe(
    "How long the provider may take in all, repeats included; left out, 600 seconds in all and 300 of silence. Where it is given, silence has no other limit",
  );

export const Execute = z
  .strictObject({
    productId: z.string().min(1).max(100),
    apiKeyId: z
      .string()
      .min(1)
      .max(100)
      .describe(
        "The id of your stored provider key, or sandbox, which asks no model and accepts any model name",
      ),
    // Faults inside are a rule's (422, every variable named), so the schema asks for an object alone.
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ type: "object", additionalProperties: { type: "string" } })
      .describe("Values by variable name; each a string of at most 32 KiB"),
    stream: z
      .boolean()
      .default(false)
      .describe("true: answer with events, as Accept: text/event-stream does"),
    options: z
      .strictObject({
        model: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe(
            "The provider's name of it; else the product's choice applies, then the provider's default",
          ),
        temperature: z.number().min(0).max(2).optional(),
        maxTokens: z.int().min(1).max(1_000_000).optional().describe("The most tokens that it may answer"),
        version: z.string().max(40).optional().describe("Pin a version that you are entitled to"),
        store: z.boolean().default(true).describe("false: keep neither variables nor output"),
        timeoutSeconds: TimeoutSeconds.optional(),
        maxCost: CostLimit.optional().describe(
          "USD, at the provider's list price. maxTokens is lowered so far that a run cannot cost more; where that leaves nothing for an answer, or no price is known, nothing is called",
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
    productVersion: z.string(),
    provider: z.string().nullable().describe("null: a workflow, whose steps have providers of their own"),
    model: z.string().nullable(),
    usage: Usage.nullable(),
    duration: z.number().nullable().describe("Seconds"),
    error: z
      .object({
        code: z
          .string()
          .describe(
            "A code of this API, or canceled, client_gone, shutdown, account_banned, account_closed; of a workflow, its step's",
          ),
        message: z.string(),
      })
      .nullable(),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
    cancelRequestedAt: Timestamp.nullable(),
  })
  .meta({ id: "Execution" });

export const ExecutionDetail = Execution.extend({
  variables: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("A prompt's variables, a workflow's input; null when not stored or past 30 days"),
  output: z
    .unknown()
    .describe(
      "A prompt's text, a workflow's result; null when there is none or it is not stored. Of a run that broke off, what came before",
    ),
  finishReason: z.string().nullable(),
  attempts: z.int(),
}).meta({ id: "ExecutionDetail" });

export type ProductRuns = z.input<typeof ProductRuns>;
export type AcceptedExecution = z.input<typeof AcceptedExecution>;
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
  description:
    "Answers when the run has ended. With `stream: true` or `Accept: text/event-stream` it answers events: `execution.started`, `output.delta` ({text}), and at last either `execution.completed` (the whole result) or `execution.failed` (the error, as in the envelope); a stream without one of the two was cut off.\n\nThe status line waits for the first piece of output, at most 20 seconds: what fails before is an ordinary error. The id of an event is how much output was sent with it: come back to `GET /ai/executions/{executionId}/events` with it as `Last-Event-ID`.\n\nIf the client disconnects, or reads nothing for 30 seconds, the run is canceled, unless the request had an `Idempotency-Key`. In each process of the service an account may have as many runs under way at once as its plan allows (`concurrentRuns`); one more is refused with 429. A run is refused with 503 while the answers under way fill the memory of the process, and one whose answer grows larger than what is left of that memory fails with 503 and `details.reason` `memory_full`. With `Prefer: respond-async` it answers 202 and the run goes on without its caller.",
  access,
  body: Execute,
  data: ExecutionResult,
  accepted: AcceptedExecution,
  eventsWhenAsked: true,
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
    status: filter(z.enum(executionStatuses)),
    productId: filter(z.string().max(100)),
    type: filter(z.string().max(40).toUpperCase()),
    mode: filter(Mode, "How it was asked for: answered at once, by 202, or as a stream"),
    from: z.iso.datetime({ offset: true }).optional().describe("From this moment on"),
    to: z.iso.datetime({ offset: true }).optional().describe("Before this moment"),
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

export const executionEvents = endpoint({
  name: "ai.executions.events",
  tag: "ai",
  method: "GET",
  path: "/ai/executions/:executionId/events",
  summary: "Hear what an execution says, while it runs and afterwards",
  description:
    "The events of a streamed run, whichever way it was started, from the beginning or from after `Last-Event-ID` (or `lastEventId`, for clients that cannot set a header).\n\nOf a prompt the id is how many UTF-16 units of output were sent up to there; `end` is that of the last event. A workflow sends `execution.queued`, `.started`, `.waiting` and `.running`, and `step.started`, `.waiting`, `.retrying`, `.completed`, `.skipped`, `.failed` and `.canceled` ({stepId, index, type, status, attempt}), with ids from 1.\n\nExactly one event ends the stream, with the whole result: `execution.completed` or `execution.failed`, of a workflow `execution.canceled`, too. Where the output is not stored (`store: false`, or past 30 days) it is null in the last event, and no `output.delta` is sent.\n\nA comment is sent every 15 seconds; a client that reads nothing for 30 seconds is disconnected, and can reconnect with the last id.",
  access,
  params: executionParams,
  query: z.strictObject({
    lastEventId: z.string().max(100).optional().describe("In the place of the header Last-Event-ID"),
  }),
  data: z.unknown(),
  answersEvents: true,
  errors: ["EXECUTION_NOT_FOUND"],
});

export const cancelExecution = endpoint({
  name: "ai.executions.cancel",
  tag: "ai",
  method: "POST",
  path: "/ai/executions/:executionId/cancel",
  summary: "Cancel an execution",
  description:
    "The call to the provider is given up within a second, wherever it runs; what came of the output by then is kept, and its tokens are estimated. Asking again is harmless; what has ended otherwise is 409.",
  access,
  params: executionParams,
  data: Execution,
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE"],
});

export const ProductRuns = z
  .object({
    total: z.int().describe("By buyers; your own runs are not counted"),
    completed: z.int(),
    failed: z.int(),
    canceled: z.int(),
    buyers: z.int().describe("How many ran it at all"),
    last30Days: z.int(),
  })
  .meta({ id: "ProductRuns" });

export const productRuns = endpoint({
  name: "ai.productRuns",
  method: "GET",
  path: "/products/:productId/runs",
  summary: "Read how often your product was run",
  description:
    "For its author and administrators: numbers alone, never what anybody ran it with or what came out.",
  access: { who: "member", permission: "products:read" },
  params: z.object({ productId: z.string() }),
  data: ProductRuns,
  errors: ["PRODUCT_NOT_FOUND"],
});
