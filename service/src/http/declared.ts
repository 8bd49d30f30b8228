import { type Endpoint, type ErrorCode, errorsOf, OpenAiError } from "@stoa/contract";
import { type Rendered, textOf } from "./envelope.ts";

/** Throws when an answer is none that the contract declares: what tests give as `inspect`. */
export function mustBeDeclared(
  endpoint: Endpoint,
  answer: Pick<Rendered, "status" | "body" | "stream"> & { error?: ErrorCode },
): void {
  if (answer.error) {
    if (endpoint.inWordsOf) strictly(endpoint, OpenAiError, JSON.parse(textOf(answer)));
    if (answer.error === "METHOD_NOT_ALLOWED" || errorsOf(endpoint).includes(answer.error)) return;
    throw new Error(`${endpoint.name} answered ${answer.error}, which it does not declare`);
  }
  const statuses = [endpoint.status, ...(endpoint.maybeAccepted || endpoint.accepted ? [202] : [])];
  if (!statuses.includes(answer.status as 200)) {
    throw new Error(`${endpoint.name} answered ${answer.status}, declared are ${statuses.join(", ")}`);
  }
  if (endpoint.answersFile || endpoint.answersEvents || (endpoint.eventsWhenAsked && answer.stream)) return;
  const body = JSON.parse(textOf(answer)) as { data: unknown };
  const data = endpoint.inWordsOf ? body : body.data;
  const schema = (answer.status === 202 && endpoint.accepted) || endpoint.data;
  for (const item of endpoint.list ? (data as unknown[]) : [data]) strictly(endpoint, schema, item);
}

function strictly(endpoint: Endpoint, schema: Endpoint["data"], item: unknown): void {
  const result = schema.safeParse(item);
  if (!result.success)
    throw new Error(`${endpoint.name} answered what its schema refuses: ${result.error.message}`);
  const lost = JSON.stringify(result.data).length < JSON.stringify(item).length;
  if (lost) throw new Error(`${endpoint.name} answered fields that its schema does not declare`);
}
