import type { EgressGuard } from "../../core/config/allowed-targets.ts";
import { BlockedTarget, createGuardedFetch, TargetFailure, TargetTimeout } from "./guarded-fetch.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    poster: Poster;
  }
}

/** All in milliseconds: one deadline over connect, headers and body. */
export const postDeadlines = { connectMs: 5_000, totalMs: 15_000 };
/** What of an answer is read and kept; the rest is left unread. */
const STORED_BODY_BYTES = 16 * 1024;
/** More than one network packet may hold beyond what is kept, and no more. */
const MAX_READ_BYTES = 1024 * 1024;

/** Why there was no answer, or not all of it. */
export type PostProblem =
  | "blocked_address"
  | "timeout"
  | "dns"
  | "connection"
  | "tls"
  | "invalid_response"
  | "shutdown";

export interface PostResult {
  /** null: there was none. */
  response: { status: number; headers: Record<string, string>; body: string } | null;
  problem: PostProblem | null;
}

/** Posts to addresses that users gave: guarded, bounded in time and bytes, redirects not followed. Never throws. */
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
      const deadline = AbortSignal.timeout(totalMs);
      let received: PostResult["response"] = null;
      try {
        const both = AbortSignal.any([deadline, signal]);
        const response = await safe.fetch(url, {
          method: "POST",
          headers,
          body,
          redirect: "manual",
          signal: both,
        });
        received = { status: response.status, headers: headersOf(response), body: "" };
        received.body = await readBeginning(response);
        return { response: received, problem: null };
      } catch (error) {
        return { response: received, problem: signal.aborted ? "shutdown" : problemOf(error, deadline) };
      }
    },
    close: () => safe.close(),
  };
}

/** Without one that is called `__proto__`: readers of JSON drop it, or worse, set it. */
const headersOf = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name !== "__proto__"));

/** As text that the database can hold: NUL is left out, and what is no UTF-8 replaced. */
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

function problemOf(error: unknown, deadline: AbortSignal): PostProblem {
  if (deadline.aborted || error instanceof TargetTimeout) return "timeout";
  if (error instanceof BlockedTarget) return "blocked_address";
  const code = error instanceof TargetFailure ? error.code : "";
  if (NAME.test(code)) return "dns";
  if (CERTIFICATE.test(code)) return "tls";
  return ["INVALID_RESPONSE", "HEADERS_TOO_LARGE", "RESPONSE_TOO_LARGE"].includes(code) ||
    code.startsWith("HPE_")
    ? "invalid_response"
    : "connection";
}
