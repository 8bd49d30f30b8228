import type { CallToolResult } from "@modelcontextprotocol/server";
import type { ApiError, FieldProblem } from "../../core/errors.ts";

const toTextContent = (text: string) => ({ type: "text" as const, text });

/** The result of a run, as text and as data. */
export const toToolResult = (text: string, structuredContent: object): CallToolResult => ({
  content: [toTextContent(text)],
  structuredContent: structuredContent as Record<string, unknown>,
});

/** A failed tool call with the text of the API's error, for the model to act on. */
export const toErrorResult = (error: ApiError): CallToolResult => ({
  isError: true,
  content: [toTextContent(toErrorText(error))],
});

export function toErrorText({ code, message, details, retryAfterSeconds }: ApiError): string {
  const problems = (details?.["errors"] ?? []) as FieldProblem[];
  return [
    `${code}: ${problems.length > 0 ? "the arguments are invalid." : message}`,
    ...problems.map(({ field, reason }) => `- ${toArgumentName(field)}: ${reason}`),
    ...(details?.["executionId"] ? [`It was execution ${details["executionId"]}.`] : []),
    ...(retryAfterSeconds === undefined ? [] : [`Try again in ${retryAfterSeconds} seconds.`]),
  ].join("\n");
}

/** The arguments of a tool have no prefix. */
const toArgumentName = (field: string): string => field.replace(/^(variables|input)\./, "");
