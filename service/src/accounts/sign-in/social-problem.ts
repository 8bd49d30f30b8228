import type { ErrorCode } from "@stoa/contract";
import { ApiError } from "../../core/errors.ts";
import type { IdentityProviderName } from "../../integrations/identity-providers/identity-provider.ts";

export const providerLabels: Record<IdentityProviderName, string> = { github: "GitHub", google: "Google" };

/** The code that the sign-in page shows a message for, and the message for programs. */
const problems = {
  ACCESS_DENIED: ["UNAUTHORIZED", (label) => `You declined at ${label}, so you are not signed in.`],
  FLOW_LOST: [
    "INVALID_TOKEN",
    (label) => `The sign-in with ${label} was not completed in this browser. Try again.`,
  ],
  UNVERIFIED_EMAIL: [
    "UNAUTHORIZED",
    (label) => `${label} has not verified your email address. Verify it there first.`,
  ],
  ACCOUNT_DISABLED: ["UNAUTHORIZED", () => "This account may not sign in."],
  SERVICE_UNAVAILABLE: [
    "SERVICE_UNAVAILABLE",
    (label) => `${label} does not answer. Try again soon, or sign in by mail.`,
  ],
} satisfies Record<string, [ErrorCode, (label: string) => string]>;

export type SocialProblem = keyof typeof problems;

export function socialProblem(problem: SocialProblem, provider: IdentityProviderName): ApiError {
  const [code, message] = problems[problem];
  return new ApiError(code, message(providerLabels[provider]), { problem });
}
