import type { DeliveryStatus } from "@stoa/contract";
import type { PostResult } from "../../integrations/egress/post.ts";
import { parseRetryAfterMs, toNextAttemptAt } from "./retry-schedule.ts";

export interface LeasedDelivery {
  id: string;
  eventId: string;
  endpointId: string;
  status: DeliveryStatus;
  /** Attempts before this one. */
  attempts: number;
  scheduledAttempts: number;
  isManual: boolean;
  /** When the schedule resumes after a manual attempt. */
  resumeAt: Date | null;
  leaseToken: string;
}

export interface AttemptResult {
  status: DeliveryStatus;
  scheduledAttempts: number;
  dueAt: Date | null;
  /** The endpoint gets no delivery until then. */
  blockedUntil: Date | null;
  /** The endpoint answered 410. */
  isGone: boolean;
  /** null: success. */
  error: string | null;
}

/**
 * `worker_lost`: the worker died during the attempt. `secret_unreadable`: the request could not be signed and was not
 * sent.
 */
export type AttemptPost = Omit<PostResult, "problem"> & {
  problem: PostResult["problem"] | "worker_lost" | "secret_unreadable";
};

const isSuccess = ({ response, problem }: AttemptPost): boolean =>
  problem === null && response !== null && response.status >= 200 && response.status < 300;

const SLOW_MS = 5_000;

/** A slow endpoint holds a worker's capacity, and its next attempts are likely to do the same. */
export function toPace(durationMs: number, { error }: AttemptResult): "quick" | "slow" | "hung" {
  if (error === "timeout") return "hung";
  return durationMs >= SLOW_MS ? "slow" : "quick";
}

/** Any 2xx succeeds and 410 ends the delivery. Any other answer is retried until the schedule ends. */
export function toAttemptResult(
  delivery: LeasedDelivery,
  post: AttemptPost,
  endedAt: Date,
  random: () => number,
): AttemptResult {
  const scheduledAttempts = delivery.scheduledAttempts + (delivery.isManual ? 0 : 1);
  const ended = { scheduledAttempts, dueAt: null, blockedUntil: null, isGone: false };
  if (isSuccess(post)) return { ...ended, status: "succeeded", error: null };
  const error = post.problem ?? "status";
  if (post.response?.status === 410) return { ...ended, status: "failed", isGone: true, error };
  const retryAfterMs = readRetryAfter(post, endedAt);
  const dueAt = delivery.isManual
    ? delivery.resumeAt
    : toNextAttemptAt(scheduledAttempts, endedAt, random, retryAfterMs);
  return {
    ...ended,
    status: dueAt ? "retrying" : toFinalStatus(delivery),
    dueAt,
    blockedUntil: retryAfterMs > 0 ? new Date(endedAt.getTime() + retryAfterMs) : null,
    error,
  };
}

/** A manual repeat that fails does not undo an earlier success. */
const toFinalStatus = ({ status, isManual }: LeasedDelivery): DeliveryStatus =>
  isManual && status === "succeeded" ? "succeeded" : "failed";

function readRetryAfter({ response }: AttemptPost, now: Date): number {
  if (response?.status !== 429 && response?.status !== 503) return 0;
  return parseRetryAfterMs(response.headers["retry-after"] ?? null, now);
}
