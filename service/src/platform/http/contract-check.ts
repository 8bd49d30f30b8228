import {
  type Endpoint,
  type ErrorCode,
  errorsOf,
  type Failure,
  type OneResponse,
  OpenAiError,
  statusesOf,
} from "@stoa/contract";
import type { z } from "zod";
import { bodyTextOf, type RenderedResponse } from "./envelope.ts";

/** Throws when a response does not match the contract. Tests pass it as `inspect`. */
export function mustMatchContract(
  endpoint: Endpoint,
  answer: Pick<RenderedResponse, "status" | "body" | "stream"> & { error?: ErrorCode },
): void {
  const { response } = endpoint;
  if (answer.error) {
    mustNameItsField(endpoint, answer);
    if (response.kind === "foreign") mustMatchSchema(endpoint, OpenAiError, JSON.parse(bodyTextOf(answer)));
    if (answer.error === "METHOD_NOT_ALLOWED" || errorsOf(endpoint).includes(answer.error)) return;
    throw new Error(`${endpoint.name} answered ${answer.error}, which it does not declare`);
  }
  const statuses: number[] = statusesOf(endpoint);
  if (!statuses.includes(answer.status)) {
    throw new Error(`${endpoint.name} answered ${answer.status}, declared are ${statuses.join(", ")}`);
  }
  const bodyOf = () => JSON.parse(bodyTextOf(answer)) as { data: unknown };
  switch (response.kind) {
    case "file":
    case "events":
      return;
    case "list":
      for (const item of bodyOf().data as unknown[]) mustMatchSchema(endpoint, response.item, item);
      return;
    case "foreign":
      if (!(response.canStream && answer.stream)) mustMatchSchema(endpoint, response.data, bodyOf());
      return;
    case "one":
      if (response.canStream && answer.stream) return;
      mustMatchSchema(endpoint, schemaOf(response, answer.status), bodyOf().data);
  }
}

const schemaOf = ({ data, accepted }: OneResponse, status: number): z.ZodType =>
  status === 202 && accepted?.kind === "background" ? accepted.data : data;

/** A message names its field once, because a user may see the message without the field. */
function mustNameItsField(endpoint: Endpoint, answer: Pick<RenderedResponse, "body">): void {
  const { error } = JSON.parse(bodyTextOf(answer)) as { error: Failure["error"] & { param?: string } };
  const field = error.details?.["field"] ?? error.param;
  if (typeof field !== "string") return;
  if (!error.message.includes(field))
    throw new Error(`${endpoint.name} answered a message without its field ${field}: ${error.message}`);
  if (error.message.startsWith(`${field}: ${field} `))
    throw new Error(`${endpoint.name} answered a message that doubles its field: ${error.message}`);
}

function mustMatchSchema(endpoint: Endpoint, schema: z.ZodType, item: unknown): void {
  const result = schema.safeParse(item);
  if (!result.success)
    throw new Error(`${endpoint.name} answered what its schema refuses: ${result.error.message}`);
  const lost = JSON.stringify(result.data).length < JSON.stringify(item).length;
  if (lost) throw new Error(`${endpoint.name} answered fields that its schema does not declare`);
}
