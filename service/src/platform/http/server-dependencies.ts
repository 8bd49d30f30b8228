import type { Span } from "@opentelemetry/api";
import type { Endpoint, ErrorCode } from "@stoa/contract";
import type { FastifyInstance } from "fastify";
import type { Caller, Context, Member, RequestSource } from "../../core/context.ts";
import type { CredentialLookup } from "./authenticate.ts";
import type { BodyDeadlines } from "./body-deadlines.ts";
import type { RenderedResponse } from "./envelope.ts";
import type { StreamTimeouts } from "./event-stream.ts";
import type { Guests } from "./guests.ts";
import type { PrometheusMetrics } from "./prometheus.ts";
import type { RateLimits } from "./rate-limit.ts";
import type { Route } from "./route.ts";

export interface RequestDeadlines {
  headersMs?: number;
  body?: Partial<BodyDeadlines>;
  upload?: Partial<BodyDeadlines>;
}

/** A response to an account's request to a path of the API. */
export interface AnsweredRequest {
  caller: Member;
  requestId: string;
  method: string;
  /** Without the query. */
  path: string;
  /** null: no such path. */
  operation: string | null;
  status: number;
  errorCode: ErrorCode | null;
  durationMs: number;
  userAgent: string | null;
}

/** app.ts passes these in, because this room imports no other group. */
export interface ServerDependencies {
  ctx: Context;
  routes: Route[];
  identify: CredentialLookup;
  limits: RateLimits;
  metrics: PrometheusMetrics;
  /** Called when an account was refused at an endpoint for administrators. */
  onAdminRefused?(caller: Member, endpoint: Endpoint, source: RequestSource): Promise<void>;
  onResponse?(request: AnsweredRequest): void;
  /** Resolves when the caches of the other processes of this node have dropped what changed. */
  catchUpSiblings?(): Promise<void>;
  /** Shorter ones in tests. */
  requestDeadlines?: RequestDeadlines;
  streamTimeouts?: Partial<StreamTimeouts>;
  /** Pages and documents beside the API: reference, health, signed links. */
  addPages(app: FastifyInstance): void;
  /** In tests: throws when a response does not match the contract. */
  inspect?(
    endpoint: Endpoint,
    answer: Pick<RenderedResponse, "status" | "body"> & { error?: ErrorCode },
  ): void;
}

/** Resolves when the caches of this node have dropped what changed until now. */
export const catchUpNode = ({
  ctx,
  catchUpSiblings,
}: Pick<ServerDependencies, "ctx" | "catchUpSiblings">): Promise<unknown> =>
  Promise.all([ctx.notifications.catchUp(), catchUpSiblings?.()]);

declare module "fastify" {
  interface FastifyInstance {
    guests: Guests;
    /** Whether cookies are sent without Secure. */
    hasPlainCookies(): boolean;
  }
  interface FastifyRequest {
    caller: Caller | null;
    startedAt: number;
    /** Of an error response of the API. */
    errorCode: ErrorCode | null;
    /** null: not traced. */
    span: Span | null;
  }
  interface FastifyContextConfig {
    endpoint?: Endpoint;
    /** For @fastify/cors, on a single route. */
    cors?: { origin: string };
  }
}

const HSTS = { "strict-transport-security": "max-age=31536000" };

/** HSTS. */
export const securityHeadersFor = (origin: string): Record<string, string> =>
  origin.startsWith("https:") ? { ...SECURITY_HEADERS, ...HSTS } : SECURITY_HEADERS;

export const SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "x-frame-options": "DENY",
};
