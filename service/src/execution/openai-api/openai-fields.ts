import { ApiError, type FieldProblem, fieldError } from "../../core/errors.ts";

/** Where a door's request holds what the run beneath calls otherwise. */
const fields: Record<string, string> = {
  productId: "model",
  "options.version": "model",
  "options.model": "metadata.model",
  apiKeyId: "metadata.apiKeyId",
};

/** `gpt-5` and the like are no models here, and the clients' users do not know what is. */
const NO_MODEL = "No product has this id: GET /v1/openai/models lists those that you may run.";

/** What is at fault where the error itself names no field. */
const faultOf: Partial<Record<ApiError["code"], string>> = {
  PRODUCT_NOT_FOUND: "model",
  PRODUCT_UNAVAILABLE: "model",
  VERSION_NOT_FOUND: "model",
  PROVIDER_KEY_NOT_FOUND: "metadata.apiKeyId",
  PROVIDER_NOT_SUPPORTED: "metadata.apiKeyId",
};

/** The error of a run, with the fields named as the request at this door has them. */
export function inItsTerms(error: unknown, variablesAt: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, details, message, retryAfterSeconds } = error;
  const problems = details?.["errors"] as FieldProblem[] | undefined;
  if ((code === "INVALID_REQUEST" || code === "VALIDATION_ERROR") && problems)
    return fieldError(
      code,
      problems.map((problem) => renamed(problem, variablesAt)),
    );
  const field = faultOf[code];
  const said = code === "PRODUCT_NOT_FOUND" ? NO_MODEL : message;
  if (!field) return error;
  const named = said.includes(field) ? said : `${field}: ${said}`;
  return new ApiError(code, named, { ...details, field }, retryAfterSeconds);
}

function renamed({ field, ...problem }: FieldProblem, variablesAt: string): FieldProblem {
  const inVariables = /^variables(\..*)?$/s.exec(field);
  return { ...problem, field: fields[field] ?? (inVariables ? variablesAt + (inVariables[1] ?? "") : field) };
}
