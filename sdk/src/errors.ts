import type { FieldProblem } from "./types.gen.ts";

export interface ErrorDetails {
  field?: string;
  reason?: string;
  errors?: FieldProblem[];
  [name: string]: unknown;
}

/** Every error that the SDK throws, but for those of wrong arguments. */
export class StoaError extends Error {
  /** Minifiers rename classes. */
  static override readonly name: string = "StoaError";

  override get name(): string {
    return this.constructor.name;
  }

  /** Whether the same request, sent again unchanged, may succeed. */
  get isRetryable(): boolean {
    return false;
  }
}

/** The service could not be reached, or the connection broke off. Nothing says whether the request was carried out. */
export class ConnectionError extends StoaError {
  static override readonly name: string = "ConnectionError";

  override get isRetryable(): boolean {
    return true;
  }
}

/** No complete response in time. Nothing says whether the request was carried out. */
export class TimeoutError extends ConnectionError {
  static override readonly name: string = "TimeoutError";
}

/** The caller's `AbortSignal` ended the call. */
export class AbortError extends StoaError {
  static override readonly name: string = "AbortError";
}

/** The response is not from the API: a proxy's error page, or a wrong `baseUrl`. */
export class UnexpectedResponseError extends StoaError {
  static override readonly name: string = "UnexpectedResponseError";

  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }

  override get isRetryable(): boolean {
    return isRetryable(this.status, "");
  }
}

/** What an error response says. */
export interface ErrorFacts {
  status: number;
  code: string;
  message: string;
  details?: ErrorDetails | undefined;
  docUrl?: string | undefined;
  requestId: string | null;
  /** Seconds. */
  retryAfter: number | null;
}

/** The service refused the request. Its subclasses are families of status codes; `code` is the exact reason. */
export class ApiError extends StoaError {
  static override readonly name: string = "ApiError";

  readonly status: number;
  /** A code of the service, such as PRODUCT_NOT_FOUND. Later versions of the service may add codes. */
  readonly code: string;
  readonly details: ErrorDetails;
  /** The code's section of the service's documentation. */
  readonly docUrl: string | null;
  /** Name it when you report a problem. */
  readonly requestId: string | null;
  /** Seconds after which the same request may succeed; null: the service names no time. */
  readonly retryAfter: number | null;

  constructor(facts: ErrorFacts) {
    super(facts.message);
    this.status = facts.status;
    this.code = facts.code;
    this.details = facts.details ?? {};
    this.docUrl = facts.docUrl ?? null;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
  }

  override get isRetryable(): boolean {
    return isRetryable(this.status, this.code);
  }
}

const isRetryable = (status: number, code: string): boolean =>
  status === 429 || (status >= 502 && status <= 504) || code === "IDEMPOTENCY_IN_PROGRESS";

/** 400: the request is malformed. `details.field` names the field. */
export class BadRequestError extends ApiError {
  static override readonly name: string = "BadRequestError";
}
/** 401: the key, token or session is missing, wrong, expired or revoked. */
export class AuthenticationError extends ApiError {
  static override readonly name: string = "AuthenticationError";
}
/** 402: a payment was declined. */
export class PaymentError extends ApiError {
  static override readonly name: string = "PaymentError";
}
/** 403: the caller may not do this. */
export class PermissionError extends ApiError {
  static override readonly name: string = "PermissionError";
}
/** 404 and 410: there is no such thing, or not for the caller. */
export class NotFoundError extends ApiError {
  static override readonly name: string = "NotFoundError";
}
/** 409 and 412: the request contradicts the present state. */
export class ConflictError extends ApiError {
  static override readonly name: string = "ConflictError";
}
/** 422: a rule refuses the values. `details.errors` lists all of them. */
export class ValidationError extends ApiError {
  static override readonly name: string = "ValidationError";
}
/** 429: too many requests. `retryAfter` says when to come back. */
export class RateLimitError extends ApiError {
  static override readonly name: string = "RateLimitError";
}
/** 5xx: the service or a provider failed. */
export class ServerError extends ApiError {
  static override readonly name: string = "ServerError";
}

const families: Record<number, typeof ApiError> = {
  400: BadRequestError,
  401: AuthenticationError,
  402: PaymentError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  412: ConflictError,
  422: ValidationError,
  429: RateLimitError,
};

/** The error of the status's family; an unknown status has its class's. */
export function toApiError(facts: ErrorFacts): ApiError {
  const Family = families[facts.status] ?? (facts.status >= 500 ? ServerError : ApiError);
  return new Family(facts);
}
