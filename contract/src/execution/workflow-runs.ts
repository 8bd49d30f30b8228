import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { Provider } from "../core/providers.ts";
import { CostLimit, executionStatuses, Usage } from "./executions.ts";

const access = { who: "member", permission: "ai:execute" } as const;

export const ExecuteWorkflow = z
  .strictObject({
    // Problems of inputs are 422 with their places, so the schema only requires an object.
    input: z
      .record(z.string(), z.unknown())
      .default({})
      .describe("The values for the workflow's `input` schema"),
    apiKeys: z
      .partialRecord(Provider, z.string().min(1).max(100))
      .default({})
      .describe(
        "The id of your stored key for each provider that the workflow calls, `sandbox` for the sandbox. A key of sandbox, ollama, openrouter or openai-compatible can replace that of any provider",
      ),
    webhookUrl: z
      .string()
      .min(1)
      .max(2_048)
      .optional()
      .describe(
        "Gets execution.completed, execution.failed or execution.canceled, and execution.waiting for each approval. Delivered like events, signed with the callback secret of your account",
      ),
    options: z
      .strictObject({
        version: z.string().max(40).optional().describe("A version that you may run"),
        maxCost: CostLimit.optional().describe(
          "USD, at the providers' list prices. A call is made only if the cost so far, its own expected cost and that of the calls in progress stay within it. Otherwise, or if no price is known, the run fails. The expected answer has `options.maxTokens` of its step, or 500 tokens. After the call its real cost counts, so a longer answer can exceed maxCost. A workflow that a step runs gets the rest at its start",
        ),
      })
      .default({}),
  })
  .meta({ id: "ExecuteWorkflow" });

export const WorkflowExecution = z
  .object({
    executionId: z.string(),
    workflowId: z.string(),
    productVersion: z.string(),
    status: z.enum(executionStatuses),
    statusUrl: z.string().describe("Returns the status and the result"),
    eventsUrl: z.string().describe("Streams the events of the run, during it and afterwards"),
    output: z.unknown().describe("The value of the workflow's `result`; null until completed"),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    usage: Usage.nullable().describe("The sums of its steps"),
    duration: z.number().nullable().describe("Seconds, from its start"),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "WorkflowExecution" });

export type ExecuteWorkflow = z.output<typeof ExecuteWorkflow>;
export type WorkflowExecution = z.input<typeof WorkflowExecution>;

export const execute = endpoint({
  name: "ai.workflows.execute",
  tag: "ai",
  method: "POST",
  path: "/ai/workflows/:workflowId/execute",
  summary: "Run a workflow that you bought with your own provider keys",
  description:
    "Returns 202: the run continues in the background and survives the processes of the service. With `Prefer: wait=N` (at most 60 seconds) it returns 200 if the run has ended by then; `status` says how. One 422 lists all errors in the input and the keys.",
  access,
  params: z.object({ workflowId: z.string() }),
  request: json(ExecuteWorkflow, { input: { topic: "autumn" }, apiKeys: { openai: "sandbox" } }),
  response: one(WorkflowExecution, { accepted: { kind: "pending", supportsPreferWait: true } }),
  errors: ["PRODUCT_NOT_FOUND", "PRODUCT_UNAVAILABLE", "VALIDATION_ERROR"],
});

const Definition = z
  .string()
  .min(1)
  .max(200_000)
  .describe("The JSON text of a workflow/1 definition, which need not be saved");

export const CheckWorkflow = z
  .strictObject({
    content: Definition,
    values: z
      .strictObject({
        stepId: z.string().min(1).max(64).optional().describe("Default: the result of the workflow"),
        executionId: z.string().min(1).max(100),
      })
      .optional()
      .describe(
        "Evaluates the expressions of a step, or the result, as far as they have no problem, with the input and the outputs of a run of yours. In a map `item` is the first item",
      ),
  })
  .meta({ id: "CheckWorkflow" });

export const WorkflowCheck = z
  .object({
    problems: z
      .array(
        z.object({
          field: z.string().describe("The place, such as content.steps[1].vars.topic"),
          reason: z.string(),
        }),
      )
      .describe("In document order; empty: the definition can be saved"),
    values: z
      .array(
        z.object({
          field: z.string(),
          value: z.unknown().describe("null if the expression cannot be evaluated; `error` says why"),
          error: z.string().nullable(),
        }),
      )
      .describe("Empty unless they were requested and the run has stored texts"),
    changedSteps: z
      .array(z.string())
      .describe(
        "With `values`, and if there are no problems: steps that differ from the definition of the run, or that it did not have",
      ),
  })
  .meta({ id: "WorkflowCheck" });

export const TestWorkflow = z
  .strictObject({
    content: Definition.optional().describe("Default: the newest version of the product"),
    stepId: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("Ends after this step, whose output is the result; only the steps that it needs run"),
    outputs: z
      .record(z.string(), z.unknown())
      .default({})
      .describe("Outputs by step id: these steps do not run and are not listed"),
    ...ExecuteWorkflow.pick({ input: true, apiKeys: true }).shape,
    options: z.strictObject({ maxCost: CostLimit.optional() }).default({}),
  })
  .meta({ id: "TestWorkflow" });

export type CheckWorkflow = z.output<typeof CheckWorkflow>;
export type WorkflowCheck = z.input<typeof WorkflowCheck>;
export type TestWorkflow = z.output<typeof TestWorkflow>;

const EXAMPLE_CONTENT = JSON.stringify({
  format: "workflow/1",
  input: { type: "object", properties: { topic: { type: "string" } } },
  steps: [{ id: "loud", type: "transform", value: "input.topic + '!'" }],
  result: "steps.loud.output",
});

export const check = endpoint({
  name: "ai.workflows.check",
  tag: "ai",
  method: "POST",
  path: "/ai/workflows/check",
  summary: "List the problems of a workflow definition without saving it",
  description:
    "Makes the checks of POST /products for editors: the definition can be in any state. With `values` it also evaluates the expressions of one step or the result, and names the steps that changed since that run.",
  access,
  request: json(CheckWorkflow, { content: EXAMPLE_CONTENT }),
  response: one(WorkflowCheck),
  errors: ["EXECUTION_NOT_FOUND"],
});

export const test = endpoint({
  name: "ai.workflows.test",
  tag: "ai",
  method: "POST",
  path: "/ai/workflows/:workflowId/test",
  summary: "Run a definition of your own workflow that is not saved, or one step of it",
  description:
    "For the product's author. A run as by POST /ai/workflows/{workflowId}/execute, at the same cost; its `productVersion` ends with -draft, and it cannot become a sample of the product. Pin `outputs` to run a step, or the rest of a workflow, with those of an earlier run.",
  access,
  params: z.object({ workflowId: z.string() }),
  request: json(TestWorkflow, { content: EXAMPLE_CONTENT, input: { topic: "autumn" }, stepId: "loud" }),
  response: one(WorkflowExecution, { accepted: { kind: "pending", supportsPreferWait: true } }),
  errors: ["PRODUCT_NOT_FOUND", "PRODUCT_UNAVAILABLE", "VALIDATION_ERROR"],
});

export const stepStatuses = [
  "queued",
  "running",
  "waiting",
  "completed",
  "failed",
  "skipped",
  "canceled",
] as const;

export const WorkflowStep = z
  .object({
    stepId: z.string(),
    index: z.int().nullable().describe("Index of a map's item, from 0; null: the step itself"),
    type: z.enum(["prompt", "embedding", "transform", "map", "approval", "delay", "product"]),
    status: z.enum(stepStatuses),
    attempt: z.int().describe("Number of calls"),
    possiblyRepeated: z
      .boolean()
      .describe("A process died during the call: the provider may have been called twice"),
    executionId: z.string().nullable().describe("The execution of another workflow that does its work"),
    output: z.unknown().describe("null until completed, if skipped, and after 30 days"),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    provider: z.string().nullable(),
    model: z.string().nullable(),
    usage: Usage.nullable(),
    dueAt: Timestamp.nullable().describe("When its wait ends; while it runs, its time limit"),
    prompt: z
      .string()
      .nullable()
      .describe(
        "The question to the approver; null: there is none, the step is no approval, or it is older than 30 days",
      ),
    decision: z.enum(["approved", "rejected"]).nullable(),
    decidedAt: Timestamp.nullable(),
    startedAt: Timestamp.nullable(),
    endedAt: Timestamp.nullable(),
  })
  .meta({ id: "WorkflowStep" });

export type WorkflowStep = z.input<typeof WorkflowStep>;

const executionParams = z.object({ executionId: z.string() });
const stepParams = executionParams.extend({ stepId: z.string() });

export const steps = endpoint({
  name: "ai.executions.steps",
  tag: "ai",
  method: "GET",
  path: "/ai/executions/:executionId/steps",
  summary: "List the started steps of a workflow execution, newest first",
  description: "The items of a map are separate steps with an `index`. The execution of a prompt has none.",
  access,
  params: executionParams,
  query: z.strictObject(paging),
  response: listOf(WorkflowStep),
  errors: ["EXECUTION_NOT_FOUND"],
});

export const retry = endpoint({
  name: "ai.executions.retry",
  tag: "ai",
  method: "POST",
  path: "/ai/executions/:executionId/retry",
  summary: "Continue a failed or canceled workflow after its last completed step",
  description:
    "Completed steps are not called again. It runs with the input, the definition and the keys of its start. Prefer works as at the start.",
  access,
  params: executionParams,
  response: one(WorkflowExecution, { accepted: { kind: "pending", supportsPreferWait: true } }),
  errors: [
    "EXECUTION_NOT_FOUND",
    "INVALID_STATE",
    "VALIDATION_ERROR",
    "PRODUCT_NOT_FOUND",
    "PRODUCT_UNAVAILABLE",
  ],
});

const decisionOn = (verb: "approve" | "reject", summary: string) =>
  endpoint({
    name: `ai.executions.${verb}`,
    tag: "ai",
    method: "POST",
    path: `/ai/executions/:executionId/steps/:stepId/${verb}`,
    summary,
    access,
    params: stepParams,
    response: one(WorkflowStep),
    errors: ["EXECUTION_NOT_FOUND", "STEP_NOT_FOUND", "INVALID_STATE"],
  });

export const approve = decisionOn("approve", "Let a workflow that waits for an approval go on");
export const reject = decisionOn("reject", "Refuse an approval: the step fails");

export const CallbackSecret = z
  .object({
    activatedAt: Timestamp.nullable().describe(
      "Since when the present secret signs; null: there is none yet",
    ),
    oldSecretUntil: Timestamp.nullable().describe("Until when the previous one also signs"),
  })
  .meta({ id: "CallbackSecret" });

export const NewCallbackSecret = z
  .object({
    secret: z.string().describe("Shown once"),
    activatesAt: Timestamp,
    oldSecretUntil: Timestamp.describe("Until then the previous one also signs"),
  })
  .meta({ id: "NewCallbackSecret" });

export type CallbackSecret = z.input<typeof CallbackSecret>;
export type NewCallbackSecret = z.input<typeof NewCallbackSecret>;

export const callbackSecret = endpoint({
  name: "account.callbackSecret.get",
  tag: "account",
  method: "GET",
  path: "/account/callback-secret",
  summary: "Read since when your callback secret signs",
  access: { who: "session" },
  response: one(CallbackSecret),
});

export const rotateCallbackSecret = endpoint({
  name: "account.callbackSecret.rotate",
  tag: "account",
  method: "POST",
  path: "/account/callback-secret",
  summary: "Create a new callback secret",
  description:
    "It signs callbacks to the `webhookUrl` of your runs from now on, and is shown once. The previous one also signs for 24 hours. The first secret is created automatically when it is needed: create your own to verify signatures. The account's owner gets an email.",
  access: { who: "session" },
  requiresFreshSignIn: true,
  response: created(NewCallbackSecret),
  showsSecret: true,
  errors: ["VALIDATION_ERROR"],
});
