import { ApiError } from "@stoa/sdk";
import { formatWait } from "./duration.ts";
import { describeError } from "./errors.ts";
import type { RunFailure } from "./follow-run.ts";
import { providerName } from "./providers.ts";

export interface RunProblem {
  /** What happened. */
  fact: string;
  /** What to do. */
  advice: string;
  requestId: string | null;
  /** `key`: another or a new key helps. `retry`: the same run may succeed. `input`: the input has to change. */
  remedy: "key" | "retry" | "input" | "none";
}

export interface RunKeyFacts {
  provider: string | null;
  /** Of the key, if it is known. */
  last4?: string | undefined;
}

type Wording = (facts: {
  name: string;
  key: string;
  wait: string;
  message: string;
}) => Omit<RunProblem, "requestId">;

const WORDINGS: Record<string, Wording> = {
  PROVIDER_KEY_INVALID: ({ name, key }) => ({
    fact: `${name} refused ${key}.`,
    advice: "Replace it, or choose another one.",
    remedy: "key",
  }),
  PROVIDER_PERMISSION_DENIED: ({ name, key }) => ({
    fact: `${name} does not allow ${key} to do this.`,
    advice: "Check its permissions there, or choose another key or model.",
    remedy: "key",
  }),
  PROVIDER_QUOTA_EXHAUSTED: ({ name }) => ({
    fact: `Your account at ${name} has no credit left.`,
    advice: "Add some there, or choose another key.",
    remedy: "key",
  }),
  PROVIDER_KEY_NOT_FOUND: () => ({
    fact: "This provider key no longer exists.",
    advice: "Choose another one, or add one.",
    remedy: "key",
  }),
  PROVIDER_RATE_LIMITED: ({ name, key, wait }) => ({
    fact: `${name} limits how often ${key} may ask.`,
    advice: `The next run works ${wait}.`,
    remedy: "retry",
  }),
  PROVIDER_ERROR: ({ name }) => ({
    fact: `${name} failed, and failed again when Stoa repeated the request.`,
    advice: "Try again later, or choose another provider.",
    remedy: "retry",
  }),
  PROVIDER_UNAVAILABLE: ({ name, wait }) => ({
    fact: `${name} failed several times in a row.`,
    advice: `Stoa asks it again ${wait}.`,
    remedy: "retry",
  }),
  PROVIDER_TIMEOUT: ({ name }) => ({
    fact: `${name} did not answer in time.`,
    advice: "It may have billed this run, and bills another try too.",
    remedy: "retry",
  }),
  // A stored error has no details, only its message.
  PROVIDER_BAD_RESPONSE: ({ name, message }) =>
    message.includes("is longer than")
      ? {
          fact: `The answer of ${name} is longer than Stoa takes, and was cut off.`,
          advice: "Set a lower limit for the answer. The provider bills what it wrote.",
          remedy: "input",
        }
      : {
          fact: `The answer of ${name} was cut off.`,
          advice: "It may have billed this run, and bills another try too.",
          remedy: "retry",
        },
  CONTENT_FILTERED: ({ name }) => ({
    fact: `${name} filtered the content.`,
    advice: "Change your input, or choose another model.",
    remedy: "input",
  }),
  CONTEXT_LENGTH_EXCEEDED: () => ({
    fact: "The prompt is too long for this model.",
    advice: "Shorten your input, or choose a model with a larger context window.",
    remedy: "input",
  }),
  KEY_BUDGET_EXCEEDED: ({ key }) => ({
    fact: `This run may cost more than what is left of the monthly budget of ${key}.`,
    advice: "Set a lower limit for the answer, or raise the budget of the key.",
    remedy: "input",
  }),
  KEY_CONCURRENCY_LIMIT: ({ key }) => ({
    fact: `The most parallel runs of ${key} are active.`,
    advice: "Wait until one has ended.",
    remedy: "retry",
  }),
  RATE_LIMIT_EXCEEDED: ({ message, wait }) => ({
    fact: message,
    advice: wait === "later" ? "" : `The next request works ${wait}.`,
    remedy: "retry",
  }),
  canceled: () => ({
    fact: "You stopped this run.",
    advice: "What it had written until then stays. The provider bills those tokens.",
    remedy: "retry",
  }),
  client_gone: () => ({
    fact: "The run ended when its client disconnected.",
    advice: "What it had written until then stays.",
    remedy: "retry",
  }),
  shutdown: () => ({
    fact: "The service restarted during the run.",
    advice: "Run it again. The provider may have billed it.",
    remedy: "retry",
  }),
};

/** A failure of a run in words for people, with what helps. */
export function describeRunFailure(failure: RunFailure, { provider, last4 }: RunKeyFacts): RunProblem {
  const { code, message, details } = failure;
  const facts = {
    name: provider === null ? "The provider" : providerName(provider),
    key: last4 ? `the key that ends in ${last4}` : "your key",
    wait: typeof details?.retryAfter === "number" ? `in ${formatWait(details.retryAfter)}` : "later",
    message,
  };
  const worded = WORDINGS[code]?.(facts) ?? { fact: message, advice: "", remedy: "none" as const };
  return { ...worded, requestId: null };
}

/** The error of a request that should have started a run. */
export function describeStartError(error: unknown, facts: RunKeyFacts): RunProblem {
  if (!(error instanceof ApiError)) {
    const { text, requestId } = describeError(error);
    return { fact: "The run did not start.", advice: text, requestId, remedy: "retry" };
  }
  const { code, message, details, retryAfter, requestId } = error;
  const failure = { code, message, details: retryAfter === null ? details : { ...details, retryAfter } };
  return { ...describeRunFailure(failure as RunFailure, facts), requestId };
}
