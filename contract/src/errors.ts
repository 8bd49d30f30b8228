/** Every error code that the service can answer with, its HTTP status and the message told when nothing better is known. */
export const errorCatalogue = {
  INVALID_REQUEST: { status: 400, message: "The request is invalid." },
  VALIDATION_ERROR: { status: 422, message: "The request breaks a rule." },

  INVALID_API_KEY: { status: 401, message: "The API key is missing, unknown, revoked or expired." },
  INVALID_SESSION: { status: 401, message: "Nobody is signed in here, or no longer." },
  INVALID_CREDENTIALS: { status: 401, message: "The address or the password is wrong." },
  INVALID_TOKEN: { status: 401, message: "This link or code is unknown, used or expired." },
  TWO_FACTOR_REQUIRED: { status: 401, message: "A code of your authenticator app is needed." },
  UNAUTHORIZED: { status: 403, message: "The credential lacks the permission that this needs." },

  INSUFFICIENT_FUNDS: { status: 402, message: "The payment method was declined." },

  NOT_FOUND: { status: 404, message: "Nothing is found at this path." },
  PRODUCT_NOT_FOUND: { status: 404, message: "No product has this id." },
  REVIEW_NOT_FOUND: { status: 404, message: "No review of this product has this id." },
  VERSION_NOT_FOUND: { status: 404, message: "The product has no such version." },
  FILE_NOT_FOUND: { status: 404, message: "No file of this product has this id." },
  IMAGE_NOT_FOUND: { status: 404, message: "No image of this product has this id." },
  DISCOUNT_CODE_NOT_FOUND: { status: 404, message: "No discount code of yours has this id." },
  ORDER_NOT_FOUND: { status: 404, message: "No order of yours has this id." },
  REFUND_NOT_FOUND: { status: 404, message: "No refund of yours has this id." },
  PAYOUT_NOT_FOUND: { status: 404, message: "No payout of yours has this id." },
  EVENT_NOT_FOUND: { status: 404, message: "No event of yours has this id." },
  WEBHOOK_NOT_FOUND: { status: 404, message: "No webhook endpoint of yours has this id." },
  DELIVERY_NOT_FOUND: { status: 404, message: "No delivery to an endpoint of yours has this id." },
  RECOVERY_NOT_FOUND: { status: 404, message: "No recovery of this endpoint has this id." },
  EXECUTION_NOT_FOUND: { status: 404, message: "No execution of yours has this id." },
  STEP_NOT_FOUND: { status: 404, message: "No step of this execution has begun under this id." },
  PAYMENT_METHOD_NOT_FOUND: { status: 404, message: "No payment method of yours has this id." },
  API_KEY_NOT_FOUND: { status: 404, message: "No API key of yours has this id." },
  SESSION_NOT_FOUND: { status: 404, message: "No session of yours has this id." },
  OAUTH_CLIENT_NOT_FOUND: { status: 404, message: "No OAuth client of yours has this id." },
  GRANT_NOT_FOUND: { status: 404, message: "No grant of yours has this id." },
  USER_NOT_FOUND: { status: 404, message: "No account has this id." },
  PROVIDER_KEY_NOT_FOUND: { status: 404, message: "No provider key of yours has this id." },

  METHOD_NOT_ALLOWED: { status: 405, message: "This path does not take this method." },
  PAYLOAD_TOO_LARGE: { status: 413, message: "The request body is too large." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: "The body is of a media type that this does not take." },
  PRECONDITION_FAILED: { status: 412, message: "The resource has changed since the ETag in If-Match." },

  INVALID_STATE: { status: 409, message: "This is not possible in the present state." },
  ALREADY_PURCHASED: { status: 409, message: "You own this product already." },
  ALREADY_REFUNDED: { status: 409, message: "This purchase is refunded already." },
  PRODUCT_UNAVAILABLE: { status: 409, message: "This product is not available now." },
  PRICE_CHANGED: { status: 409, message: "The price differs from expectedPrice." },
  CONFLICT: { status: 409, message: "This conflicts with something that exists." },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    message: "The first request with this Idempotency-Key still runs.",
  },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: "This Idempotency-Key was used with another request." },

  RATE_LIMIT_EXCEEDED: { status: 429, message: "Too many requests." },
  INTERNAL_ERROR: { status: 500, message: "Something went wrong on our side. Try again with backoff." },
  SERVICE_UNAVAILABLE: { status: 503, message: "The service cannot answer right now. Try again soon." },

  PROVIDER_NOT_SUPPORTED: { status: 422, message: "The product does not run on this key's provider." },
  CONTENT_FILTERED: {
    status: 422,
    message: "The provider filtered the content: change what you give it, or choose another model.",
  },
  CONTEXT_LENGTH_EXCEEDED: {
    status: 422,
    message:
      "The prompt is too long for the model. Shorten what you give it, or choose a model with a larger window.",
  },
  PROVIDER_KEY_INVALID: {
    status: 424,
    message:
      "The provider refused the stored key. Put one that is valid in its place: PATCH /v1/ai/keys/{id}.",
  },
  PROVIDER_PERMISSION_DENIED: {
    status: 424,
    message: "The provider does not let this key do that. Look at its rights there, or run with another key.",
  },
  PROVIDER_QUOTA_EXHAUSTED: {
    status: 424,
    message: "The provider account has no credit left. Add some there, or run with another key.",
  },
  PROVIDER_RATE_LIMITED: {
    status: 429,
    message: "The provider limits the rate of this key. Try again after the time in Retry-After.",
  },
  KEY_BUDGET_EXCEEDED: {
    status: 429,
    message:
      "This call may cost more than is left of the stored key's monthly budget. Lower maxTokens, or raise monthlyBudget.",
  },
  KEY_CONCURRENCY_LIMIT: {
    status: 429,
    message:
      "The stored key runs as many calls at once as it may. Wait until one has ended, or raise maxConcurrency.",
  },
  PROVIDER_ERROR: { status: 502, message: "The provider failed. Try again later." },
  PROVIDER_BAD_RESPONSE: {
    status: 502,
    message:
      "The provider's answer was broken or cut off. It may have been billed: trying again is another call.",
  },
  PROVIDER_UNAVAILABLE: {
    status: 503,
    message: "The provider failed again and again; it is left alone until the time in Retry-After is over.",
  },
  OUTPUT_SCHEMA_MISMATCH: { status: 502, message: "The provider's answer does not fit the schema." },
  PROVIDER_TIMEOUT: {
    status: 504,
    message: "The provider did not answer in time. It may have billed the call: trying again is another one.",
  },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof errorCatalogue;
export const errorCodes = Object.keys(errorCatalogue) as ErrorCode[];
