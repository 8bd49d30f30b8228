import type { CallToolResult } from "@modelcontextprotocol/server";
import type { ApiError, FieldProblem } from "../../core/errors.ts";

const toTextContent = (text: string) => ({ type: "text" as const, text });

/** What came of a run: as text for whoever reads along, and as data. */
export const toToolResult = (text: string, structuredContent: object): CallToolResult => ({
  content: [toTextContent(text)],
  structuredContent: structuredContent as Record<string, unknown>,
});

/** Why there is nothing, for a model to act on. Nothing in it is secret: the words are those of the API's errors. */
export const toErrorResult = (error: ApiError): CallToolResult => ({
  isError: true,
  content: [toTextContent(toErrorText(error))],
});

export function toErrorText({ code, message, details, retryAfterSeconds }: ApiError): string {
  const problems = (details?.["errors"] ?? []) as FieldProblem[];
  return [
    `${code}: ${problems.length > 0 ? "these arguments cannot be taken." : message}`,
    ...problems.map(({ field, reason }) => `- ${toArgumentName(field)}: ${reason}`),
    ...(details?.["executionId"] ? [`It was execution ${details["executionId"]}.`] : []),
    ...(retryAfterSeconds === undefined ? [] : [`Try again in ${retryAfterSeconds} seconds.`]),
  ].join("\n");
}

/** As a tool or prompt names it, whose arguments stand by themselves. */
const toArgumentName = (field: string): string => field.replace(/^(variables|input)\./, "");
