/** Exit codes, as the guide lists them. */
export const exitCodes = {
  ok: 0,
  usage: 1,
  api: 2,
  unequal: 3,
  authentication: 4,
  interrupted: 130,
} as const;

/** The command line cannot be carried out as it is. `fix` says what to do. */
export class UsageError extends Error {
  readonly fix: string | undefined;

  constructor(message: string, fix?: string) {
    super(message);
    this.fix = fix;
  }
}

/** No usable key or login. */
export class LoginError extends Error {
  readonly fix: string;

  constructor(message: string, fix = "Run `stoa login`, or set STOA_API_KEY.") {
    super(message);
    this.fix = fix;
  }
}

/** What the service answered, or the state of the work, does not allow the command. */
export class CommandError extends Error {
  readonly fix: string | undefined;

  constructor(message: string, fix?: string) {
    super(message);
    this.fix = fix;
  }
}

/** The user ended the command. Has the name of the SDK's error. */
export class Interrupted extends Error {
  override name = "AbortError";
}

interface FailureFacts {
  name?: string;
  message?: string;
  fix?: string;
  status?: number;
  code?: string;
  requestId?: string | null;
  docUrl?: string | null;
  retryAfter?: number | null;
  details?: { errors?: { field: string; reason: string }[]; field?: string };
}

/** The lines for people, and the exit code. Reads errors by their fields, so that nothing of the SDK is loaded for a usage error. */
export function describeFailure(error: unknown): { lines: string[]; exitCode: number } {
  if (!(error instanceof Error)) return { lines: [`error: ${String(error)}`], exitCode: exitCodes.api };
  if (error.name === "AbortError") return { lines: [], exitCode: exitCodes.interrupted };
  const facts = error as FailureFacts;
  const lines = [`error: ${error.message.replace(/^error: /, "")}`, ...listProblems(facts)];
  const fix = fixFor(error, facts);
  if (fix) lines.push(`fix: ${fix}`);
  if (facts.requestId) lines.push(`request: ${facts.requestId}`);
  return { lines, exitCode: exitCodeOf(error, facts) };
}

function exitCodeOf(error: Error, { status, name }: FailureFacts): number {
  if (error instanceof UsageError || name === "TypeError" || name === "CommanderError")
    return exitCodes.usage;
  return error instanceof LoginError || status === 401 ? exitCodes.authentication : exitCodes.api;
}

/** The SDK refuses a key, an address or an id that cannot work. */
const isArgumentError = ({ name, message }: Error) =>
  name === "TypeError" && /^(apiKey|baseUrl|An id)/.test(message);

/** The fields that a rule refused, beside the message, which may name one of them. */
function listProblems({ details, message = "" }: FailureFacts): string[] {
  return (details?.errors ?? [])
    .filter(({ reason }) => !message.includes(reason))
    .map(({ field, reason }) => `  ${field}: ${reason}`);
}

function fixFor(error: Error, { fix, status, code, retryAfter, docUrl }: FailureFacts): string | undefined {
  if (fix) return fix;
  if (status === 401)
    return "The key is wrong, expired or revoked: run `stoa login`, or set another STOA_API_KEY.";
  if (status === 403 && code === "UNAUTHORIZED")
    return "The key lacks the permission: create one with it, or log in with `stoa login --scope …`.";
  if (status === 429 && retryAfter != null) return `Try again in ${Math.ceil(retryAfter)} seconds.`;
  if (isArgumentError(error)) return "Copy it again, whole and alone.";
  if (error.name === "ConnectionError")
    return "Is the service running, and the address right? `stoa doctor` checks it.";
  if (error.name === "UnexpectedResponseError")
    return "Check --base-url or STOA_BASE_URL, which ends with /v1.";
  return docUrl ?? undefined;
}
