import type { CallToolResult } from "@modelcontextprotocol/server";
import type { ApiError, FieldProblem } from "../../core/errors.ts";

const text = (said: string) => ({ type: "text" as const, text: said });

/** What came of a run: as text for whoever reads along, and as data. */
export const resultOf = (said: string, structuredContent: object): CallToolResult => ({
  content: [text(said)],
  structuredContent: structuredContent as Record<string, unknown>,
});

/** Why there is nothing, for a model to act on. Nothing in it is secret: the words are those of the API's errors. */
export const refusalOf = (error: ApiError): CallToolResult => ({
  isError: true,
  content: [text(wordsOf(error))],
});

export function wordsOf({ code, message, details, retryAfterSeconds }: ApiError): string {
  const problems = (details?.["errors"] ?? []) as FieldProblem[];
  return [
    `${code}: ${problems.length > 0 ? "these arguments cannot be taken." : message}`,
    ...problems.map(({ field, reason }) => `- ${asArgument(field)}: ${reason}`),
    ...(details?.["executionId"] ? [`It was execution ${details["executionId"]}.`] : []),
    ...(retryAfterSeconds === undefined ? [] : [`Try again in ${retryAfterSeconds} seconds.`]),
  ].join("\n");
}

/** As a tool or prompt names it, whose arguments stand by themselves. */
const asArgument = (field: string): string => field.replace(/^(variables|input)\./, "");
