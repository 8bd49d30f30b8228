import type { WebhookDelivery, WebhookEndpoint, WebhookStats } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";
import { formatTime } from "./format.ts";

/** Its description, or the host of its URL. */
export function nameOf({ description, url }: Pick<WebhookEndpoint, "description" | "url">): string {
  if (description.trim() !== "") return description;
  return isInbox(url) ? "Built-in inbox" : new URL(url).host;
}

const INBOX_PATH = "/dev/hooks/";

export const isInbox = (url: string): boolean =>
  url.startsWith(location.origin + INBOX_PATH) || new URL(url).pathname.startsWith(INBOX_PATH);

/** An address of the built-in inbox that nobody guesses. */
export const newInboxUrl = (): string =>
  `${location.origin}${INBOX_PATH}${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;

export const DISABLED_REASONS: Record<string, string> = {
  owner: "You disabled this webhook.",
  gone: "Disabled, since the endpoint answered 410 Gone.",
  failing: "Disabled after five days without a success.",
};

/** The phrases of HTTP statuses that receivers often send. */
const PHRASES: Record<number, string> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  301: "Moved Permanently",
  302: "Found",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export const statusLine = (status: number): string => [status, PHRASES[status]].filter(Boolean).join(" ");

const ERRORS: Record<string, string> = {
  timeout: "No response in 15 s",
  dns: "Unknown host",
  connection: "Connection failed",
  tls: "TLS failed",
  blocked_address: "Address not allowed",
  invalid_response: "Invalid response",
  secret_unreadable: "Secret unreadable",
  worker_lost: "Attempt broke off",
};

/** The same in a word, for a column. */
const SHORT_ERRORS: Record<string, string> = {
  timeout: "time-out",
  dns: "DNS",
  connection: "connection",
  tls: "TLS",
  blocked_address: "blocked",
  invalid_response: "invalid",
  secret_unreadable: "secret",
  worker_lost: "broke off",
};

/** What an attempt got: `503`, or why there is no response. */
export const resultOf = (status: number | null, errorCode: string | null): string =>
  status === null ? (ERRORS[errorCode ?? ""] ?? errorCode ?? "No response") : String(status);

const TONES: Record<string, Tone> = {
  pending: "accent",
  retrying: "warning",
  succeeded: "good",
  failed: "bad",
};

export const toneOf = ({ status }: Pick<WebhookDelivery, "status">): Tone => TONES[status] ?? "neutral";

/** The response of the last attempt, or the status of a delivery without one. */
export function labelOf({ status, lastAttempt }: WebhookDelivery): string {
  if (lastAttempt === null || status === "skipped" || status === "canceled") return status;
  const { responseStatus, errorCode } = lastAttempt;
  return responseStatus === null ? (SHORT_ERRORS[errorCode ?? ""] ?? "no response") : String(responseStatus);
}

/** The share of deliveries that succeeded, of those that had an attempt; null: none had. */
export function successShare({ deliveries }: Pick<WebhookStats, "deliveries">): number | null {
  const { succeeded, failed, retrying } = deliveries;
  const attempted = succeeded + failed + retrying;
  return attempted === 0 ? null : succeeded / attempted;
}

/** When a delivery is attempted next; in the past: a worker takes it now. */
export const nextTimeOf = (iso: string): string => (Date.parse(iso) <= Date.now() ? "now" : formatTime(iso));

const SCHEDULED_ATTEMPTS = 8;

/** `4 of 8`, without the schedule's length once retries by hand have gone beyond it. */
export const attemptOf = (attempt: number): string =>
  attempt > SCHEDULED_ATTEMPTS ? String(attempt) : `${attempt} of ${SCHEDULED_ATTEMPTS}`;

export type Segment = "failed" | "succeeded" | "scheduled" | "unused";

/** The marks of a delivery's attempts: one for each of the schedule, and more after retries by hand. */
export function segmentsOf(results: boolean[], isScheduled: boolean): Segment[] {
  const segments: Segment[] = results.map((isSuccess) => (isSuccess ? "succeeded" : "failed"));
  if (isScheduled) segments.push("scheduled");
  while (segments.length < SCHEDULED_ATTEMPTS) segments.push("unused");
  return segments;
}
