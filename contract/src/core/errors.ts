/** Every error code of the service, with its HTTP status and its default message. */
export const errorCatalogue = {
  INVALID_REQUEST: { status: 400, message: "The request is invalid." },
  VALIDATION_ERROR: { status: 422, message: "The request breaks a rule." },

  INVALID_API_KEY: { status: 401, message: "The API key is missing, unknown, revoked or expired." },
  INVALID_SESSION: { status: 401, message: "You are not signed in, or your session has ended." },
  INVALID_CREDENTIALS: { status: 401, message: "The email address or the password is wrong." },
  INVALID_TOKEN: { status: 401, message: "This link or code is unknown, used or expired." },
  TWO_FACTOR_REQUIRED: {
    status: 401,
    message: "Two-factor authentication is required: send a code of your authenticator app.",
  },
  UNAUTHORIZED: { status: 403, message: "The credential does not have the required permission." },

  INSUFFICIENT_FUNDS: { status: 402, message: "The payment method was declined." },

  NOT_FOUND: { status: 404, message: "No resource exists at this path." },
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
  EVALUATION_NOT_FOUND: { status: 404, message: "No evaluation of yours has this id." },
  EXECUTION_NOT_FOUND: { status: 404, message: "No execution of yours has this id." },
  SHARED_RUN_NOT_FOUND: { status: 404, message: "No run is shared under this link." },
  STEP_NOT_FOUND: { status: 404, message: "No step that has started in this execution has this id." },
  PAYMENT_METHOD_NOT_FOUND: { status: 404, message: "No payment method of yours has this id." },
  API_KEY_NOT_FOUND: { status: 404, message: "No API key of yours has this id." },
  SIGN_IN_PROVIDER_NOT_FOUND: {
    status: 404,
    message: "No sign-in provider of this name is linked to your account.",
  },
  SESSION_NOT_FOUND: { status: 404, message: "No session of yours has this id." },
  OAUTH_CLIENT_NOT_FOUND: { status: 404, message: "No OAuth client of yours has this id." },
  GRANT_NOT_FOUND: { status: 404, message: "No grant of yours has this id." },
  SELLER_NOT_FOUND: { status: 404, message: "No seller has this handle or id." },
  USER_NOT_FOUND: { status: 404, message: "No account has this id." },
  PROVIDER_KEY_NOT_FOUND: { status: 404, message: "No provider key of yours has this id." },
  JOB_NOT_FOUND: { status: 404, message: "No waiting, running or failed job has this id." },
  QUEUE_NOT_FOUND: { status: 404, message: "No job that runs on a schedule has this name." },
  EMAIL_NOT_FOUND: { status: 404, message: "No email that was not sent has this id." },
  BACKUP_NOT_FOUND: { status: 404, message: "No backup has this id." },
  LEDGER_VERIFICATION_NOT_FOUND: { status: 404, message: "No verification of the ledger has this id." },
  RESTORE_NOT_FOUND: { status: 404, message: "No restore has this id here." },

  METHOD_NOT_ALLOWED: { status: 405, message: "This path does not support this method." },
  PAYLOAD_TOO_LARGE: { status: 413, message: "The request body is too large." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: "This endpoint does not accept this media type." },
  PRECONDITION_FAILED: { status: 412, message: "The resource has changed since the ETag in If-Match." },

  INVALID_STATE: { status: 409, message: "The current state does not allow this." },
  ALREADY_PURCHASED: { status: 409, message: "You already own this product." },
  ALREADY_REFUNDED: { status: 409, message: "This purchase is already refunded." },
  PRODUCT_UNAVAILABLE: { status: 409, message: "This product is not available now." },
  PRICE_CHANGED: { status: 409, message: "The price differs from what was expected." },
  CONFLICT: { status: 409, message: "This conflicts with an existing resource." },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    message: "The first request with this Idempotency-Key is still running.",
  },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: "This Idempotency-Key was used with another request." },

  RATE_LIMIT_EXCEEDED: { status: 429, message: "Too many requests." },
  INTERNAL_ERROR: { status: 500, message: "Something went wrong on our side. Try again with backoff." },
  SERVICE_UNAVAILABLE: { status: 503, message: "The service cannot answer right now. Try again soon." },

  PROVIDER_NOT_SUPPORTED: { status: 422, message: "The product does not support this key's provider." },
  CONTENT_FILTERED: {
    status: 422,
    message: "The provider filtered the content. Change your input, or choose another model.",
  },
  CONTEXT_LENGTH_EXCEEDED: {
    status: 422,
    message:
      "The prompt is too long for the model. Shorten your input, or choose a model with a larger context window.",
  },
  PROVIDER_KEY_INVALID: {
    status: 424,
    message: "The provider refused the stored key. Replace it with a valid one: PATCH /v1/ai/keys/{id}.",
  },
  PROVIDER_PERMISSION_DENIED: {
    status: 424,
    message:
      "The provider does not allow this key to do that. Check its permissions there, or run with another key.",
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
      "This call may cost more than the rest of the stored key's monthly budget. Lower maxTokens, or raise monthlyBudget.",
  },
  KEY_CONCURRENCY_LIMIT: {
    status: 429,
    message:
      "The stored key already runs its maximum number of parallel calls. Wait until one has ended, or raise maxConcurrency.",
  },
  PROVIDER_ERROR: { status: 502, message: "The provider failed. Try again later." },
  PROVIDER_BAD_RESPONSE: {
    status: 502,
    message:
      "The provider's answer was broken or cut off. The provider may have billed it, and would bill another attempt too.",
  },
  PROVIDER_UNAVAILABLE: {
    status: 503,
    message: "The provider failed several times in a row. Try again after the time in Retry-After.",
  },
  OUTPUT_SCHEMA_MISMATCH: { status: 502, message: "The provider's answer does not fit the schema." },
  PROVIDER_TIMEOUT: {
    status: 504,
    message:
      "The provider did not answer in time. It may have billed the call, and would bill another attempt too.",
  },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof errorCatalogue;
export const errorCodes = Object.keys(errorCatalogue) as ErrorCode[];

/** What a client can do about each code, shown on /docs/errors. */
export const errorRemedies: Record<ErrorCode, string> = {
  INVALID_REQUEST: "Correct the fields that `details.errors` names, then send the request again.",
  VALIDATION_ERROR: "Fix what `details.errors` lists, then send the request again.",
  INVALID_API_KEY:
    "Send `Authorization: Bearer <key>` with a key of this environment that is neither revoked nor expired. Create one in your account.",
  INVALID_SESSION: "Sign in again.",
  INVALID_CREDENTIALS: "Check the email address and the password, or sign in with an emailed link.",
  INVALID_TOKEN: "Request a new link or code, and use it once before it expires.",
  TWO_FACTOR_REQUIRED:
    "Send the code of your authenticator app with `details.challenge` to POST /api/auth/two-factor.",
  UNAUTHORIZED:
    "Use a credential that has what `details.required` names: a permission, a role, an account, a session or a second factor.",
  INSUFFICIENT_FUNDS: "Read `details.declineCode`, then pay with another payment method.",
  NOT_FOUND: "Check the path and the method against the API reference.",
  PRODUCT_NOT_FOUND: "Take the id from GET /products. A draft of another account is not found either.",
  REVIEW_NOT_FOUND: "Take the id from GET /products/{id}/reviews.",
  VERSION_NOT_FOUND: "Take the version from GET /products/{id}/versions.",
  FILE_NOT_FOUND: "Take the id from `files` of GET /products/{id}.",
  IMAGE_NOT_FOUND: "Take the id from `gallery` of GET /products/{id}.",
  DISCOUNT_CODE_NOT_FOUND: "Take the id from GET /discount-codes.",
  ORDER_NOT_FOUND: "Take the id from GET /purchases, or as the seller from GET /sales.",
  REFUND_NOT_FOUND: "Take the id from GET /refunds.",
  PAYOUT_NOT_FOUND: "Take the id from GET /payouts.",
  EVENT_NOT_FOUND: "Take the id from GET /events. To start a stream again, omit `Last-Event-ID`.",
  WEBHOOK_NOT_FOUND: "Take the id from GET /webhooks.",
  DELIVERY_NOT_FOUND: "Take the id from GET /webhooks/{id}/deliveries, which lists the last 30 days.",
  RECOVERY_NOT_FOUND: "Take the id from the response of POST /webhooks/{id}/recover.",
  EVALUATION_NOT_FOUND: "Take the id from GET /products/{productId}/evaluations.",
  EXECUTION_NOT_FOUND: "Take the id from GET /ai/executions, which lists the last 30 days.",
  SHARED_RUN_NOT_FOUND:
    "Ask its owner for a new link. A link ends when its owner ends it, when the run is deleted, and after 30 days.",
  STEP_NOT_FOUND: "Take the id from GET /ai/executions/{id}/steps.",
  PAYMENT_METHOD_NOT_FOUND:
    "Take the id from GET /payment-methods, or omit it to pay with the default method.",
  API_KEY_NOT_FOUND: "Take the id from GET /api-keys.",
  SIGN_IN_PROVIDER_NOT_FOUND: "Take the name from GET /account/sign-in-providers.",
  SESSION_NOT_FOUND: "Take the id from GET /account/sessions.",
  OAUTH_CLIENT_NOT_FOUND: "Take the id from GET /oauth-clients.",
  GRANT_NOT_FOUND: "Take the id from GET /account/grants.",
  SELLER_NOT_FOUND:
    "Take the handle or id from `author` of a product. A closed or banned account is not found either.",
  USER_NOT_FOUND: "Take the id from GET /admin/users.",
  PROVIDER_KEY_NOT_FOUND: "Take the id from GET /ai/keys.",
  JOB_NOT_FOUND: "Take the id from GET /admin/jobs. Jobs that succeeded are not listed.",
  QUEUE_NOT_FOUND:
    "Take the name from GET /admin/queues. A job without a `schedule` runs on request, and cannot be started here.",
  EMAIL_NOT_FOUND: "Take the id from GET /admin/emails. Sent emails are not listed.",
  BACKUP_NOT_FOUND: "Take the id from GET /admin/backups.",
  LEDGER_VERIFICATION_NOT_FOUND: "Take the id from GET /admin/ledger-verifications.",
  RESTORE_NOT_FOUND:
    "Begin a new restore: POST /api/auth/restores. A restart of the service ends one that does not run.",
  METHOD_NOT_ALLOWED: "Use a method that the `Allow` header lists.",
  PAYLOAD_TOO_LARGE: "Send a smaller body. The message names the limit in bytes.",
  UNSUPPORTED_MEDIA_TYPE:
    "Set `Content-Type` to `application/json`, or for uploads to `multipart/form-data`.",
  PRECONDITION_FAILED:
    "Read the resource again, apply your change to it, and send its new ETag in `If-Match`.",
  INVALID_STATE:
    "Compare `details.current` with `details.allowed`, and bring the resource into an allowed state first.",
  ALREADY_PURCHASED: "Use the purchase that `details.orderId` names.",
  ALREADY_REFUNDED: "No action is needed. GET /purchases/{id} shows the refund.",
  PRODUCT_UNAVAILABLE: "Choose another product, or wait until the seller publishes this one again.",
  PRICE_CHANGED: "Show the buyer the price in `details`, then send it as `expectedPrice` or `expectedTotal`.",
  CONFLICT: "Read the existing resource that `details` names. Change or remove it, or choose another value.",
  IDEMPOTENCY_IN_PROGRESS: "Wait for `Retry-After`, then repeat the request with the same key.",
  IDEMPOTENCY_KEY_REUSED: "Use a new `Idempotency-Key` for each different request.",
  RATE_LIMIT_EXCEEDED:
    "Wait for `Retry-After`. GET /account/usage shows your quota, and a larger plan raises it.",
  INTERNAL_ERROR: "Try again with backoff. If the error remains, report `meta.request_id` to the operator.",
  SERVICE_UNAVAILABLE: "Wait for `Retry-After`, then repeat the request.",
  PROVIDER_NOT_SUPPORTED: "Run with a key of a provider that `compatibility` of the product lists.",
  CONTENT_FILTERED: "Change your variables, or choose another model.",
  CONTEXT_LENGTH_EXCEEDED: "Shorten your variables, or choose a model with a larger context window.",
  PROVIDER_KEY_INVALID:
    "Store a valid key with PATCH /ai/keys/{id}, then check it with POST /ai/keys/{id}/verify.",
  PROVIDER_PERMISSION_DENIED:
    "Allow the key to use this model in the provider's console, or run with another key.",
  PROVIDER_QUOTA_EXHAUSTED: "Add credit to your account at the provider, or run with another key.",
  PROVIDER_RATE_LIMITED: "Wait for `Retry-After`, or run with another key.",
  KEY_BUDGET_EXCEEDED: "Lower `maxTokens`, or raise `monthlyBudget` with PATCH /ai/keys/{id}.",
  KEY_CONCURRENCY_LIMIT: "Wait until a call has ended, or raise `maxConcurrency` with PATCH /ai/keys/{id}.",
  PROVIDER_ERROR: "Try again later, or run with a key of another provider.",
  PROVIDER_BAD_RESPONSE: "Check the provider's bill before you try again: the call may have been charged.",
  PROVIDER_UNAVAILABLE: "Wait for `Retry-After`, or run with a key of another provider.",
  OUTPUT_SCHEMA_MISMATCH:
    "Run again, choose a model that follows schemas, or make the schema of the step less strict.",
  PROVIDER_TIMEOUT:
    "Check the provider's bill before you try again. Set `options.timeoutSeconds` (at most 1,800), or lower `maxTokens`.",
};
