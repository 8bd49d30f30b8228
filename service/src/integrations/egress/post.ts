import type { EgressGuard } from "../../core/config/allowed-targets.ts";
import { followSignal } from "../../core/follow-signal.ts";
import { BlockedTarget, createGuardedFetch, TargetFailure, TargetTimeout } from "./guarded-fetch.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    poster: Poster;
  }
}

/** All in milliseconds: one deadline over connect, headers and body. */
export const postDeadlines = { connectMs: 5_000, totalMs: 15_000 };
/** The stored beginning of a response body; the rest is not read. */
const STORED_BODY_BYTES = 16 * 1024;
/** Network packets may deliver more than is stored, but not more than this. */
const MAX_READ_BYTES = 1024 * 1024;

/** Why there is no complete response. */
export type PostProblem =
  | "blocked_address"
  | "timeout"
  | "dns"
  | "connection"
  | "tls"
  | "invalid_response"
  | "shutdown";

export interface PostResult {
  /** null: no response. */
  response: { status: number; headers: Record<string, string>; body: string } | null;
  problem: PostProblem | null;
}

/** Posts to addresses from users: guarded, limited in time and bytes, without redirects. Never throws. */
export interface Poster {
  post(url: string, headers: Record<string, string>, body: string, signal: AbortSignal): Promise<PostResult>;
  close(): Promise<void>;
}

export function createPoster(guard: EgressGuard, { connectMs, totalMs } = postDeadlines): Poster {
  const safe = createGuardedFetch(guard, {
    connectMs,
    headersMs: totalMs,
    bodyIdleMs: totalMs,
    maxResponseBytes: MAX_READ_BYTES,
  });
  return {
    async post(url, headers, body, signal) {
      const deadline = startDeadline(totalMs, signal);
      let received: PostResult["response"] = null;
      try {
        const response = await safe.fetch(url, {
          method: "POST",
          headers,
          body,
          redirect: "manual",
          signal: deadline.signal,
        });
        received = { status: response.status, headers: headersOf(response), body: "" };
        received.body = await readBeginning(response);
        return { response: received, problem: null };
      } catch (error) {
        return {
          response: received,
          problem: signal.aborted ? "shutdown" : problemOf(error, deadline.hasPassed()),
        };
      } finally {
        deadline.stop();
      }
    },
    close: () => safe.close(),
  };
}

interface Deadline {
  /** Aborts when the outer signal aborts or the time is over. */
  signal: AbortSignal;
  hasPassed(): boolean;
  stop(): void;
}

function startDeadline(ms: number, outer: AbortSignal): Deadline {
  const aborter = new AbortController();
  let hasPassed = false;
  const timer = setTimeout(() => {
    hasPassed = true;
    aborter.abort();
  }, ms);
  const unfollow = followSignal(aborter, outer);
  return {
    signal: aborter.signal,
    hasPassed: () => hasPassed,
    stop() {
      clearTimeout(timer);
      unfollow();
    },
  };
}

/** Without a header `__proto__`, which readers of JSON drop or, worse, apply. */
const headersOf = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name !== "__proto__"));

/** Text that PostgreSQL can store: without NUL, invalid UTF-8 replaced. */
async function readBeginning(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk.subarray(0, STORED_BODY_BYTES - bytes));
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes >= STORED_BODY_BYTES) break;
  }
  return Buffer.concat(chunks).toString("utf8").replaceAll("\0", "");
}

const CERTIFICATE = /CERT|TLS|SSL|SELF_SIGNED|ALTNAME|UNABLE_TO/;
const NAME = /^E(NOTFOUND|AI_AGAIN|NODATA|BADNAME)/;

function problemOf(error: unknown, isLate: boolean): PostProblem {
  if (isLate || error instanceof TargetTimeout) return "timeout";
  if (error instanceof BlockedTarget) return "blocked_address";
  const code = error instanceof TargetFailure ? error.code : "";
  if (NAME.test(code)) return "dns";
  if (CERTIFICATE.test(code)) return "tls";
  return ["INVALID_RESPONSE", "HEADERS_TOO_LARGE", "RESPONSE_TOO_LARGE"].includes(code) ||
    code.startsWith("HPE_")
    ? "invalid_response"
    : "connection";
}
