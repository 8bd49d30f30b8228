import * as account from "./accounts/account.ts";
import * as keys from "./accounts/keys.ts";
import * as oauth from "./accounts/oauth.ts";
import * as signIn from "./accounts/sign-in.ts";
import * as twoFactor from "./accounts/two-factor.ts";
import * as admin from "./backoffice/admin.ts";
import * as adminStats from "./backoffice/admin-stats.ts";
import * as catalogue from "./catalog/catalog.ts";
import * as files from "./catalog/files.ts";
import * as transfer from "./catalog/import-export.ts";
import * as moderation from "./catalog/moderation.ts";
import * as products from "./catalog/products.ts";
import * as reviews from "./catalog/reviews.ts";
import * as versions from "./catalog/versions.ts";
import * as analytics from "./commerce/analytics.ts";
import * as analyticsCustomers from "./commerce/analytics-customers.ts";
import * as discounts from "./commerce/discounts.ts";
import * as paymentMethods from "./commerce/payment-methods.ts";
import * as payouts from "./commerce/payouts.ts";
import * as plans from "./commerce/plans.ts";
import * as purchases from "./commerce/purchases.ts";
import * as referrals from "./commerce/referrals.ts";
import * as refunds from "./commerce/refunds.ts";
import * as sales from "./commerce/sales.ts";
import type { Endpoint } from "./core/endpoint.ts";
import * as events from "./events/events.ts";
import * as webhooks from "./events/webhooks.ts";
import * as ai from "./execution/ai.ts";
import * as estimates from "./execution/estimates.ts";
import * as executions from "./execution/executions.ts";
import * as openai from "./execution/openai.ts";
import * as runReceipts from "./execution/run-receipts.ts";
import * as workflowRuns from "./execution/workflow-runs.ts";

/** Every endpoint by room and verb. */
export const api = {
  products: {
    list: catalogue.list,
    facets: catalogue.facets,
    get: products.get,
    create: products.create,
    change: products.change,
    publish: products.publish,
    withdraw: products.withdraw,
    unpublish: products.unpublish,
    remove: products.remove,
    history: products.history,
    versions: versions.list,
    version: versions.get,
    export: transfer.exportProducts,
    import: transfer.importProducts,
  },
  moderation: {
    list: moderation.list,
    approve: moderation.approve,
    reject: moderation.reject,
    suspend: moderation.suspend,
    reinstate: moderation.reinstate,
  },
  files: { add: files.addFile, remove: files.removeFile },
  images: { add: files.addImage, remove: files.removeImage },
  categories: { list: catalogue.categories },
  tags: { list: catalogue.tags },
  reviews: {
    list: reviews.list,
    get: reviews.get,
    create: reviews.create,
    change: reviews.change,
    remove: reviews.remove,
    reply: reviews.reply,
    removeReply: reviews.removeReply,
    report: reviews.report,
  },
  purchases: { create: purchases.create, list: purchases.list, get: purchases.get },
  payouts: {
    balance: payouts.balance,
    list: payouts.list,
    get: payouts.get,
    create: payouts.create,
    account: payouts.account,
    nameAccount: payouts.nameAccount,
    onboard: payouts.onboard,
  },
  paymentMethods: {
    list: paymentMethods.list,
    add: paymentMethods.add,
    remove: paymentMethods.remove,
    makeDefault: paymentMethods.makeDefault,
  },
  refunds: {
    create: refunds.create,
    list: refunds.list,
    get: refunds.get,
    approve: refunds.approve,
    reject: refunds.reject,
    cancel: refunds.cancel,
    listAll: refunds.listAll,
    give: refunds.give,
    refundBuyers: refunds.refundBuyers,
  },
  sales: { list: sales.list },
  analytics: {
    products: analytics.products,
    exportProducts: analytics.exportProducts,
    revenue: analytics.revenue,
    exportRevenue: analytics.exportRevenue,
    customers: analyticsCustomers.customers,
    exportCustomers: analyticsCustomers.exportCustomers,
  },
  discounts: {
    list: discounts.list,
    get: discounts.get,
    create: discounts.create,
    change: discounts.change,
    remove: discounts.remove,
  },
  referrals: { get: referrals.get },
  ai: {
    execute: executions.execute,
    estimate: estimates.estimate,
    executions: executions.executions,
    execution: executions.execution,
    executionEvents: executions.executionEvents,
    cancelExecution: executions.cancelExecution,
    removeExecution: executions.removeExecution,
    executionReceipt: runReceipts.executionReceipt,
    productRuns: executions.productRuns,
    keys: ai.keys,
    createKey: ai.createKey,
    changeKey: ai.changeKey,
    removeKey: ai.removeKey,
    verifyKey: ai.verifyKey,
    executeWorkflow: workflowRuns.execute,
    steps: workflowRuns.steps,
    retry: workflowRuns.retry,
    approve: workflowRuns.approve,
    reject: workflowRuns.reject,
  },
  openai: { complete: openai.complete, models: openai.models, model: openai.model },
  events: { list: events.list, get: events.get, stream: events.stream },
  webhooks: {
    list: webhooks.list,
    create: webhooks.create,
    get: webhooks.get,
    change: webhooks.change,
    remove: webhooks.remove,
    rotateSecret: webhooks.rotateSecret,
    test: webhooks.test,
    deliveries: webhooks.deliveries,
    stats: webhooks.stats,
    recover: webhooks.recover,
    recovery: webhooks.recovery,
    egress: webhooks.egress,
  },
  deliveries: { get: webhooks.delivery, retry: webhooks.retry },
  apiKeys: { list: keys.list, create: keys.create, rotate: keys.rotate, revoke: keys.revoke },
  signIn: {
    magicLink: signIn.magicLink,
    verify: signIn.verify,
    register: signIn.register,
    logIn: signIn.logIn,
    twoFactor: signIn.twoFactor,
    logOut: signIn.logOut,
    changePassword: signIn.changePassword,
  },
  twoFactor: {
    get: twoFactor.state,
    setUp: twoFactor.setUp,
    confirm: twoFactor.confirm,
    renewBackupCodes: twoFactor.renewBackupCodes,
    remove: twoFactor.remove,
  },
  account: {
    get: account.get,
    change: account.change,
    close: account.close,
    sessions: account.sessions,
    endOthers: account.endOthers,
    endSession: account.endSession,
    callbackSecret: workflowRuns.callbackSecret,
    rotateCallbackSecret: workflowRuns.rotateCallbackSecret,
  },
  admin: {
    users: admin.users,
    user: admin.user,
    changeUser: admin.changeUser,
    ban: admin.ban,
    unban: admin.unban,
    endSessions: admin.endSessions,
    audit: admin.audit,
    oauthClients: admin.oauthClients,
    stats: adminStats.stats,
    orders: sales.orders,
    order: sales.order,
    reviews: reviews.moderated,
    hideReview: reviews.hide,
    restoreReview: reviews.restore,
    payouts: payouts.all,
    webhooks: webhooks.all,
    becomeFirst: admin.becomeFirst,
  },
  plans: {
    usage: plans.usage,
    subscription: plans.subscription,
    payments: plans.payments,
    changeSubscription: plans.changeSubscription,
  },
  oauth: {
    clients: oauth.clients,
    createClient: oauth.createClient,
    rotateClientSecret: oauth.rotateClientSecret,
    deleteClient: oauth.deleteClient,
    grants: oauth.grants,
    revokeGrant: oauth.revokeGrant,
  },
};

export const endpoints: Endpoint[] = Object.values(api).flatMap((room) => Object.values(room) as Endpoint[]);

export type { Account, CloseAccount, Session, UpdateAccount } from "./accounts/account.ts";
export { Address } from "./accounts/address.ts";
export { isCountry } from "./accounts/countries.ts";
export type { ApiKey, ApiKeyStatus, CreateApiKey, NewApiKey, RotatedApiKey } from "./accounts/keys.ts";
export {
  type CreateOAuthClient,
  type Grant,
  grantTypes,
  identityScopes,
  type NewOAuthClient,
  type OAuthClient,
  RedirectUri,
  type Scope,
  scopeDescriptions,
} from "./accounts/oauth.ts";
export {
  type ChangePassword,
  type LogIn,
  MIN_PASSWORD,
  NewPassword,
  type Register,
  type VerifyToken,
  type VerifyTwoFactor,
} from "./accounts/sign-in.ts";
export type {
  AdminOAuthClient,
  AdminUser,
  AdminUserDetail,
  AuditEntry,
  UpdateUser,
} from "./backoffice/admin.ts";
export type { Stats } from "./backoffice/admin-stats.ts";
export type { Facets } from "./catalog/catalog.ts";
export { MAX_FILE_BYTES, MAX_IMAGE_BYTES, type ProductFile, type ProductImage } from "./catalog/files.ts";
export {
  ImportedProduct,
  ImportedUpdate,
  type ImportResult,
  MAX_IMPORTED_BYTES,
  MAX_IMPORTED_PRODUCTS,
} from "./catalog/import-export.ts";
export {
  type ProductStatus,
  productStatuses,
  type StatusChange,
  type SuspensionReason,
  suspensionReasons,
} from "./catalog/lifecycle.ts";
export type { ModeratedProduct, SuspendProduct } from "./catalog/moderation.ts";
export {
  type CreateProduct,
  type ProductCard,
  type ProductDetail,
  type ProductWarning,
  productTypes,
  type UpdateProduct,
} from "./catalog/products.ts";
export type { CreateReview, ModeratedReview, Review, UpdateReview } from "./catalog/reviews.ts";
export { SEMANTIC_VERSION, SemanticVersion, type Version, type VersionDetail } from "./catalog/versions.ts";
export type { ProductAnalytics, RevenueAnalytics, RevenueGroup } from "./commerce/analytics.ts";
export type { CustomerAnalytics } from "./commerce/analytics-customers.ts";
export type { CreateDiscountCode, DiscountCode, UpdateDiscountCode } from "./commerce/discounts.ts";
export type { PaymentMethod } from "./commerce/payment-methods.ts";
export type {
  AdminPayout,
  Balance,
  CreatePayout,
  Onboarding,
  Payout,
  PayoutAccount,
  PayoutStatus,
  SetPayoutAccount,
} from "./commerce/payouts.ts";
export {
  type Plan,
  type PlanPayment,
  type PlanPaymentStatus,
  plans,
  Quota,
  Quotas,
  type QuotaWindow,
  type Subscription,
  type UpdateSubscription,
  type Usage,
} from "./commerce/plans.ts";
export type {
  CreatePurchase,
  NewPurchase,
  OrderStatus,
  Purchase,
  PurchaseDetail,
} from "./commerce/purchases.ts";
export type { Referral } from "./commerce/referrals.ts";
export {
  type AdminRefund,
  type ApprovalReason,
  type CreateRefund,
  type OrderEvent,
  type Refund,
  type Refundable,
  type RefundedBuyers,
  type RefundObstacle,
  type RefundOrder,
  type RefundStatus,
  refundReasons,
} from "./commerce/refunds.ts";
export type { AdminOrder, AdminOrderDetail, Sale } from "./commerce/sales.ts";
export {
  type Accepted,
  type Data,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  endpoint,
  errorsOf,
  fieldsOf,
  type Input,
  isRepeatable,
  type JsonRequest,
  json,
  type Method,
  type OneResponse,
  one,
  type RawRequest,
  statusesOf,
  statusOf,
  type UploadRequest,
} from "./core/endpoint.ts";
export { Failure, isFilter, ListMeta, Meta, type Ratings, type Success } from "./core/envelope.ts";
export { type ErrorCode, errorCatalogue, errorCodes, errorRemedies } from "./core/errors.ts";
export {
  type Access,
  type Permission,
  permissions,
  type Role,
  type RolePermission,
  rolePermissions,
  roles,
} from "./core/permissions.ts";
export { type Provider, providers } from "./core/providers.ts";
export { hasInvisible, toVisibleLine, toVisibleText, visibleLine, visibleText } from "./core/visible-text.ts";
export {
  type CallbackData,
  type CallbackType,
  callbackData,
  callbackTypes,
  Event,
  type EventData,
  type EventType,
  eventData,
  eventSchema,
  eventTypes,
} from "./events/events.ts";
export type {
  AdminWebhookEndpoint,
  CreateWebhookEndpoint,
  DeliveryAttempt,
  DeliveryStatus,
  NewWebhookEndpoint,
  RecoverWebhook,
  RotatedWebhookSecret,
  RotateWebhookSecret,
  UpdateWebhookEndpoint,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookEndpoint,
  WebhookRecovery,
  WebhookStats,
} from "./events/webhooks.ts";
export type {
  CreateProviderKey,
  ProviderKey,
  UpdateProviderKey,
} from "./execution/ai.ts";
export type { Estimate, EstimatedCall, EstimateExecution } from "./execution/estimates.ts";
export {
  type AcceptedExecution,
  type Execute,
  type Execution,
  type ExecutionDetail,
  type ExecutionResult,
  executionStatuses,
  executionTypes,
  type ProductRuns,
  TimeoutSeconds,
} from "./execution/executions.ts";
export {
  type ChatCompletion,
  type CreateChatCompletion,
  OpenAiError,
  type OpenAiModel,
} from "./execution/openai.ts";
export { RunReceipt, type SignedRunReceipt } from "./execution/run-receipts.ts";
export type {
  CallbackSecret,
  ExecuteWorkflow,
  NewCallbackSecret,
  WorkflowExecution,
  WorkflowStep,
} from "./execution/workflow-runs.ts";
export { VARIABLE_NAME, type Variable } from "./formats/variables.ts";
