import { openidClient } from "./openid-client.ts";

/**
 * `denied`: the user declined. `refused`: the response is inconsistent, or the provider refused it. `unreachable`: no readable
 * response in time.
 */
export type IdentityProblemKind = "denied" | "refused" | "unreachable";

/** The message is for the operator's log and quotes nothing of the response. */
export class IdentityProblem extends Error {
  readonly kind: IdentityProblemKind;
  constructor(kind: IdentityProblemKind, reason: string) {
    super(reason);
    this.name = "IdentityProblem";
    this.kind = kind;
  }
}

/** Codes of openid-client for a response that violates the protocol. */
const UNFIT = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
]);

/** The library's errors contain whole responses with tokens as their cause, so only names are used. */
export function toIdentityProblem(error: unknown): IdentityProblem {
  if (error instanceof IdentityProblem) return error;
  const { AuthorizationResponseError, ClientError, ResponseBodyError } = openidClient();
  if (error instanceof AuthorizationResponseError)
    return new IdentityProblem(error.error === "access_denied" ? "denied" : "refused", nameOf(error.error));
  if (error instanceof ResponseBodyError) return new IdentityProblem("refused", nameOf(error.error));
  const code = error instanceof ClientError ? (error.code ?? error.message) : (error as Error).name;
  if (!UNFIT.has(code)) return new IdentityProblem("unreachable", code);
  return new IdentityProblem("refused", findErrorInBody(error) ?? code);
}

/** GitHub reports errors with status 200, which the library takes for a response without a token. */
function findErrorInBody(error: unknown): string | null {
  const { cause } = error as { cause?: { cause?: { body?: { error?: unknown } } } };
  const name = cause?.cause?.body?.error;
  return typeof name === "string" ? nameOf(name) : null;
}

/** Only error codes in the format of RFC 6749 are repeated. */
const nameOf = (code: string) => (/^[a-z_]{1,60}$/.test(code) ? code : "an unknown error code");
