import type { DeliveryStatus } from "@stoa/contract";
import type { PostResult } from "../../integrations/egress/post.ts";
import { parseRetryAfterMs, toNextAttemptAt } from "./retry-schedule.ts";

/** A delivery as whoever attempts it holds it. */
export interface LeasedDelivery {
  id: string;
  eventId: string;
  endpointId: string;
  status: DeliveryStatus;
  /** Made before this one. */
  attempts: number;
  scheduledAttempts: number;
  isManual: boolean;
  /** When the schedule goes on after an attempt that somebody asked for. */
  resumeAt: Date | null;
  leaseToken: string;
}

/** Where an attempt leaves its delivery and its endpoint. */
export interface AttemptResult {
  status: DeliveryStatus;
  scheduledAttempts: number;
  dueAt: Date | null;
  /** Nothing goes to the endpoint until then. */
  blockedUntil: Date | null;
  /** The endpoint said that it is no more. */
  isGone: boolean;
  /** null: it was taken. */
  error: string | null;
}

/** How an attempt went; `worker_lost`: whoever made it died of it; `secret_unreadable`: it could not be signed, and was not posted. */
export type AttemptPost = Omit<PostResult, "problem"> & {
  problem: PostResult["problem"] | "worker_lost" | "secret_unreadable";
};

const isSuccess = ({ response, problem }: AttemptPost): boolean =>
  problem === null && response !== null && response.status >= 200 && response.status < 300;

/** An answer that took longer than that is slow: it held a worker's slot for so long. */
const SLOW_MS = 5_000;

/** How long an attempt held its slot, which the next ones to that endpoint are likely to do as well. */
export function toPace(durationMs: number, { error }: AttemptResult): "quick" | "slow" | "hung" {
  if (error === "timeout") return "hung";
  return durationMs >= SLOW_MS ? "slow" : "quick";
}

/** What an attempt means: any 2xx is taken, 410 ends it, all else is attempted again as long as the schedule goes. */
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

/** What was delivered once stays so, though it could not be repeated. */
const toFinalStatus = ({ status, isManual }: LeasedDelivery): DeliveryStatus =>
  isManual && status === "succeeded" ? "succeeded" : "failed";

function readRetryAfter({ response }: AttemptPost, now: Date): number {
  if (response?.status !== 429 && response?.status !== 503) return 0;
  return parseRetryAfterMs(response.headers["retry-after"] ?? null, now);
}
