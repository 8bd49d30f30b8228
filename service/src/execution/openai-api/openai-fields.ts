import { ApiError, type FieldProblem, fieldError } from "../../core/errors.ts";

/** Fields of the OpenAI request by the names that `POST /ai/execute` gives them. */
const fieldNames: Record<string, string> = {
  productId: "model",
  "options.version": "model",
  "options.model": "metadata.model",
  apiKeyId: "metadata.apiKeyId",
};

/** Clients send names such as `gpt-5`, so the error explains where the ids are. */
const UNKNOWN_MODEL = "No product has this id: GET /v1/openai/models lists those that you may run.";

/** The field for errors that name none. */
const fieldOfCode: Partial<Record<ApiError["code"], string>> = {
  PRODUCT_NOT_FOUND: "model",
  PRODUCT_UNAVAILABLE: "model",
  VERSION_NOT_FOUND: "model",
  PROVIDER_KEY_NOT_FOUND: "metadata.apiKeyId",
  PROVIDER_NOT_SUPPORTED: "metadata.apiKeyId",
};

/** The error of a run, with the field names of the OpenAI request. */
export function withOpenAiFields(error: unknown, variablesAt: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, details, message, retryAfterSeconds } = error;
  const problems = details?.["errors"] as FieldProblem[] | undefined;
  if ((code === "INVALID_REQUEST" || code === "VALIDATION_ERROR") && problems)
    return fieldError(
      code,
      problems.map((problem) => renameField(problem, variablesAt)),
    );
  const field = fieldOfCode[code];
  const text = code === "PRODUCT_NOT_FOUND" ? UNKNOWN_MODEL : message;
  if (!field) return error;
  const named = text.includes(field) ? text : `${field}: ${text}`;
  return new ApiError(code, named, { ...details, field }, retryAfterSeconds);
}

function renameField({ field, ...problem }: FieldProblem, variablesAt: string): FieldProblem {
  const inVariables = /^variables(\..*)?$/s.exec(field);
  return {
    ...problem,
    field: fieldNames[field] ?? (inVariables ? variablesAt + (inVariables[1] ?? "") : field),
  };
}
