import { type Client, pathPart, type RequestOptions, RUN_ENDS, withLastEventId } from "./client.ts";
import { AbortError, type ErrorDetails, StoaError, toApiError } from "./errors.ts";
import { readEvents, type StreamEvent } from "./event-stream.ts";
import { AiResource, AiWorkflowsResource } from "./resources.gen.ts";
import type {
  AcceptedExecution,
  Execute,
  ExecuteWorkflow,
  ExecutionResult,
  WorkflowExecution,
} from "./types.gen.ts";

/** The error in the last event of a run that failed. */
export interface RunFailure {
  code: string;
  message: string;
  details?: ErrorDetails;
  docUrl?: string;
}

/** An event of a streamed prompt. */
export type PromptEvent =
  | { id: string; type: "execution.started"; data: { executionId: string } }
  | { id: string; type: "output.delta"; data: { text: string } }
  | { id: string; type: "execution.completed"; data: ExecutionResult }
  | { id: string; type: "execution.failed"; data: RunFailure };

interface StepChange {
  stepId: string;
  /** Of a map's item; not set: the step itself. */
  index?: number;
  type: string;
  status: string;
  attempt: number;
}

/** An event of a workflow's run. */
export type WorkflowEvent =
  | {
      id: string;
      type: `execution.${"queued" | "started" | "waiting" | "running"}`;
      data: { executionId?: string };
    }
  | {
      id: string;
      type: `step.${"started" | "waiting" | "retrying" | "completed" | "skipped" | "failed" | "canceled"}`;
      data: StepChange;
    }
  | {
      id: string;
      type: "execution.completed" | "execution.failed" | "execution.canceled";
      data: WorkflowExecution;
    };

/** A prompt that ran takes up to 600 seconds by default, and the response comes at its end. */
const RUN_TIMEOUT_MS = 660_000;
const MAX_RECONNECTS = 5;

/** A run as it happens. Iterate over its events, or take `text()` or `result()`; one of them, once. */
export class RunStream<E extends StreamEvent, R> implements AsyncIterable<E> {
  readonly #events: AsyncGenerator<E>;
  readonly #toResult: (event: StreamEvent) => R;

  constructor(events: AsyncGenerator<E>, toResult: (event: StreamEvent) => R) {
    this.#events = events;
    this.#toResult = toResult;
  }

  [Symbol.asyncIterator](): AsyncIterator<E> {
    return this.#events;
  }

  /** The pieces of the output. Throws when the run fails. */
  async *text(): AsyncGenerator<string> {
    for await (const event of this.#events) {
      if (event.type === "output.delta") yield (event.data as { text: string }).text;
      if (RUN_ENDS.has(event.type)) this.#toResult(event);
    }
  }

  /** The result, at the end. Throws when the run fails. */
  async result(): Promise<R> {
    for await (const event of this.#events) if (RUN_ENDS.has(event.type)) return this.#toResult(event);
    throw new StoaError("The stream was read already: take result() alone, or the last event");
  }
}

export class Ai extends AiResource {
  override readonly workflows = new AiWorkflows(this.client);

  override execute(body: Execute, options: RequestOptions = {}) {
    return super.execute(body, runOptions(this.client, body, options));
  }

  /** Starts a prompt in the background. `ai.executions.events(executionId)` streams its events. */
  executeInBackground(body: Execute, options: RequestOptions = {}) {
    const headers = { ...options.headers, prefer: "respond-async" };
    return this.client.call<AcceptedExecution>("POST", "/ai/execute", { body }, { ...options, headers });
  }

  /**
   * Runs a prompt and yields its events while it runs. A broken connection is resumed after the last event. To stop reading cancels the run.
   */
  stream(body: Execute, options: RequestOptions = {}): RunStream<PromptEvent, ExecutionResult> {
    return new RunStream(streamPrompt(this.client, body, options), toPromptResult);
  }
}

export class AiWorkflows extends AiWorkflowsResource {
  /** Starts a workflow and yields its events. To stop reading leaves the run alone: `ai.executions.cancel` ends it. */
  stream(
    workflowId: string,
    body?: ExecuteWorkflow,
    options: RequestOptions = {},
  ): RunStream<WorkflowEvent, WorkflowExecution> {
    return new RunStream(this.#start(workflowId, body, options), toWorkflowResult);
  }

  async *#start(workflowId: string, body: ExecuteWorkflow | undefined, options: RequestOptions) {
    const { executionId } = await this.execute(workflowId, body, options);
    yield* eventsOf(this.client, executionId, options) as AsyncGenerator<WorkflowEvent>;
  }
}

const eventsOf = (client: Client, executionId: string, options: RequestOptions) =>
  client.events(
    `/ai/executions/${pathPart(executionId)}/events`,
    {},
    { maxRetries: MAX_RECONNECTS, ...options },
  );

async function* streamPrompt(
  client: Client,
  body: Execute,
  options: RequestOptions,
): AsyncGenerator<PromptEvent> {
  // The same key on each try: a repeat joins the run of the first one.
  const idempotencyKey = options.idempotencyKey ?? crypto.randomUUID();
  const start = { ...runOptions(client, body, options), idempotencyKey };
  let executionId: string | null = null;
  let isAbandoned = true;
  const open = (lastEventId: string | null) =>
    executionId === null
      ? client.openStream("POST", "/ai/execute", { body: { ...body, stream: true } }, start)
      : client.openStream(
          "GET",
          `/ai/executions/${executionId}/events`,
          {},
          withLastEventId(options, lastEventId),
        );
  const isLast = ({ type }: StreamEvent) => RUN_ENDS.has(type);
  try {
    for await (const event of readEvents<never>({
      open,
      isLast,
      maxReconnects: MAX_RECONNECTS,
      signal: options.signal,
    })) {
      const typed = event as PromptEvent;
      if (typed.type === "execution.started") executionId = typed.data.executionId;
      isAbandoned = !isLast(event);
      yield typed;
    }
  } catch (error) {
    // After a lost connection the caller can still read the run's result.
    isAbandoned = error instanceof AbortError;
    throw error;
  } finally {
    // A run under an Idempotency-Key goes on without its caller.
    if (executionId !== null && isAbandoned)
      await client.call("POST", `/ai/executions/${executionId}/cancel`).catch(() => {});
  }
}

function runOptions(client: Client, { options: run }: Execute, options: RequestOptions): RequestOptions {
  const runMs = run?.timeoutSeconds ? run.timeoutSeconds * 1_000 + 60_000 : RUN_TIMEOUT_MS;
  return { ...options, timeoutMs: options.timeoutMs ?? client.timeoutMs ?? runMs };
}

function toPromptResult({ type, data }: StreamEvent): ExecutionResult {
  if (type === "execution.completed") return data as ExecutionResult;
  throw toRunError(data as RunFailure);
}

function toWorkflowResult({ data }: StreamEvent): WorkflowExecution {
  const execution = data as WorkflowExecution;
  if (execution.error) throw toRunError(execution.error);
  return execution;
}

/** The run failed, not the request: its code says why. */
export const toRunError = ({ code, message, details, docUrl }: RunFailure) =>
  toApiError({ status: 200, code, message, details, docUrl, requestId: null, retryAfter: null });
