import { AuthorizationResponseError, ClientError, ResponseBodyError } from "openid-client";

/**
 * `denied`: the person said no. `refused`: what came back does not fit together, or the provider does not take it.
 * `unreachable`: no readable answer in time.
 */
export type IdentityProblemKind = "denied" | "refused" | "unreachable";

/** Why nobody is known yet. Its message is for the operator's log and repeats nothing that came back. */
export class IdentityProblem extends Error {
  readonly kind: IdentityProblemKind;
  constructor(kind: IdentityProblemKind, why: string) {
    super(why);
    this.name = "IdentityProblem";
    this.kind = kind;
  }
}

/** What openid-client throws when the provider answered, but not what it must. */
const UNFIT = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
]);

/** The library's errors carry whole answers, tokens included, as their cause: only names get out of here. */
export function toIdentityProblem(error: unknown): IdentityProblem {
  if (error instanceof IdentityProblem) return error;
  if (error instanceof AuthorizationResponseError)
    return new IdentityProblem(error.error === "access_denied" ? "denied" : "refused", nameOf(error.error));
  if (error instanceof ResponseBodyError) return new IdentityProblem("refused", nameOf(error.error));
  const code = error instanceof ClientError ? (error.code ?? error.message) : (error as Error).name;
  if (!UNFIT.has(code)) return new IdentityProblem("unreachable", code);
  return new IdentityProblem("refused", errorInside(error) ?? code);
}

/** GitHub says what is wrong with HTTP 200, which the library takes for an answer without a token. */
function errorInside(error: unknown): string | null {
  const { cause } = error as { cause?: { cause?: { body?: { error?: unknown } } } };
  const name = cause?.cause?.body?.error;
  return typeof name === "string" ? nameOf(name) : null;
}

/** An error code as RFC 6749 has them; anything else is not repeated. */
const nameOf = (code: string) => (/^[a-z_]{1,60}$/.test(code) ? code : "an unknown error code");
