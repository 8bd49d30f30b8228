import { type Endpoint, type ErrorCode, errorsOf, type Failure, OpenAiError } from "@stoa/contract";
import { bodyTextOf, type RenderedResponse } from "./envelope.ts";

/** Throws when an answer is none that the contract declares: what tests give as `inspect`. */
export function mustMatchContract(
  endpoint: Endpoint,
  answer: Pick<RenderedResponse, "status" | "body" | "stream"> & { error?: ErrorCode },
): void {
  if (answer.error) {
    mustNameItsField(endpoint, answer);
    if (endpoint.responseFormat) mustMatchSchema(endpoint, OpenAiError, JSON.parse(bodyTextOf(answer)));
    if (answer.error === "METHOD_NOT_ALLOWED" || errorsOf(endpoint).includes(answer.error)) return;
    throw new Error(`${endpoint.name} answered ${answer.error}, which it does not declare`);
  }
  const statuses = [endpoint.status, ...(endpoint.mayBePending || endpoint.acceptedData ? [202] : [])];
  if (!statuses.includes(answer.status as 200)) {
    throw new Error(`${endpoint.name} answered ${answer.status}, declared are ${statuses.join(", ")}`);
  }
  if (endpoint.fileTypes || endpoint.streamsEvents || (endpoint.canStream && answer.stream)) return;
  const body = JSON.parse(bodyTextOf(answer)) as { data: unknown };
  const data = endpoint.responseFormat ? body : body.data;
  const schema = (answer.status === 202 && endpoint.acceptedData) || endpoint.data;
  for (const item of endpoint.list ? (data as unknown[]) : [data]) mustMatchSchema(endpoint, schema, item);
}

/** The message of a request's fault names the field once, so that it helps a person who sees nothing else. */
function mustNameItsField(endpoint: Endpoint, answer: Pick<RenderedResponse, "body">): void {
  const { error } = JSON.parse(bodyTextOf(answer)) as { error: Failure["error"] & { param?: string } };
  const field = error.details?.["field"] ?? error.param;
  if (typeof field !== "string") return;
  if (!error.message.includes(field))
    throw new Error(`${endpoint.name} answered a message without its field ${field}: ${error.message}`);
  if (error.message.startsWith(`${field}: ${field} `))
    throw new Error(`${endpoint.name} answered a message that doubles its field: ${error.message}`);
}

function mustMatchSchema(endpoint: Endpoint, schema: Endpoint["data"], item: unknown): void {
  const result = schema.safeParse(item);
  if (!result.success)
    throw new Error(`${endpoint.name} answered what its schema refuses: ${result.error.message}`);
  const lost = JSON.stringify(result.data).length < JSON.stringify(item).length;
  if (lost) throw new Error(`${endpoint.name} answered fields that its schema does not declare`);
}
