import * as account from "./account.ts";
import * as admin from "./admin.ts";
import * as adminStats from "./admin-stats.ts";
import * as ai from "./ai.ts";
import * as analytics from "./analytics.ts";
import * as analyticsCustomers from "./analytics-customers.ts";
import * as catalogue from "./catalogue.ts";
import * as discounts from "./discounts.ts";
import type { Endpoint } from "./endpoint.ts";
import * as estimates from "./estimates.ts";
import * as events from "./events.ts";
import * as executions from "./executions.ts";
import * as files from "./files.ts";
import * as keys from "./keys.ts";
import * as moderation from "./moderation.ts";
import * as oauth from "./oauth.ts";
import * as openai from "./openai.ts";
import * as paymentMethods from "./payment-methods.ts";
import * as payouts from "./payouts.ts";
import * as plans from "./plans.ts";
import * as products from "./products.ts";
import * as purchases from "./purchases.ts";
import * as referrals from "./referrals.ts";
import * as refunds from "./refunds.ts";
import * as reviews from "./reviews.ts";
import * as runReceipts from "./run-receipts.ts";
import * as sales from "./sales.ts";
import * as signIn from "./sign-in.ts";
import * as transfer from "./transfer.ts";
import * as twoFactor from "./two-factor.ts";
import * as versions from "./versions.ts";
import * as webhooks from "./webhooks.ts";
import * as workflowRuns from "./workflow-runs.ts";

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
    drawCallbackSecret: workflowRuns.drawCallbackSecret,
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
    removeClient: oauth.removeClient,
    grants: oauth.grants,
    removeGrant: oauth.removeGrant,
  },
};

export const endpoints: Endpoint[] = Object.values(api).flatMap((room) => Object.values(room) as Endpoint[]);

export type { Account, ChangeAccount, CloseAccount, Session } from "./account.ts";
export { Address } from "./address.ts";
export type { AdminOAuthClient, AdminUser, AdminUserDetail, AuditEntry, ChangeUser } from "./admin.ts";
export type { Stats } from "./admin-stats.ts";
export type {
  ChangeProviderKey,
  CreateProviderKey,
  ProviderKey,
} from "./ai.ts";
export type { ProductAnalytics, RevenueAnalytics, RevenueGroup } from "./analytics.ts";
export type { CustomerAnalytics } from "./analytics-customers.ts";
export type { Facets } from "./catalogue.ts";
export { isCountry } from "./countries.ts";
export type { ChangeDiscountCode, CreateDiscountCode, DiscountCode } from "./discounts.ts";
export {
  type Data,
  type Endpoint,
  endpoint,
  errorsOf,
  type Input,
  isRepeatable,
  type Method,
} from "./endpoint.ts";
export { Failure, isFilter, ListMeta, Meta, type Ratings, type Success } from "./envelope.ts";
export { type ErrorCode, errorCatalogue, errorCodes, errorRemedies } from "./errors.ts";
export type { Estimate, EstimatedCall, EstimateResult } from "./estimates.ts";
export {
  type CallbackData,
  type CallbackType,
  callbackData,
  callbackTypes,
  Event,
  type EventData,
  type EventType,
  eventData,
  eventOf,
  eventTypes,
} from "./events.ts";
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
} from "./executions.ts";
export { MAX_FILE_BYTES, MAX_IMAGE_BYTES, type ProductFile, type ProductImage } from "./files.ts";
export type { ApiKey, ApiKeyStatus, CreateApiKey, NewApiKey, RotatedApiKey } from "./keys.ts";
export {
  type Move,
  type ProductStatus,
  productStatuses,
  type SuspensionReason,
  suspensionReasons,
} from "./lifecycle.ts";
export type { ModeratedProduct, SuspendProduct } from "./moderation.ts";
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
} from "./oauth.ts";
export { type ChatCompletion, type CreateChatCompletion, OpenAiError, type OpenAiModel } from "./openai.ts";
export type { PaymentMethod } from "./payment-methods.ts";
export type {
  AdminPayout,
  AskPayout,
  Balance,
  NamePayoutAccount,
  Onboarding,
  Payout,
  PayoutAccount,
  PayoutStatus,
} from "./payouts.ts";
export {
  type Access,
  type Permission,
  permissions,
  type Role,
  type RolePermission,
  rolePermissions,
  roles,
} from "./permissions.ts";
export {
  type ChangeSubscription,
  type Plan,
  type PlanPayment,
  type PlanPaymentStatus,
  plans,
  Quota,
  Quotas,
  type QuotaWindow,
  type Subscription,
  type Usage,
} from "./plans.ts";
export {
  type ChangeProduct,
  type CreateProduct,
  type ProductCard,
  type ProductDetail,
  type ProductWarning,
  productTypes,
} from "./products.ts";
export { type Provider, providers } from "./providers.ts";
export type { CreatePurchase, NewPurchase, OrderStatus, Purchase, PurchaseDetail } from "./purchases.ts";
export type { Referral } from "./referrals.ts";
export {
  type AdminRefund,
  type ApprovalReason,
  type GiveRefund,
  type OrderEvent,
  type Refund,
  type Refundable,
  type RefundedBuyers,
  type RefundObstacle,
  type RefundStatus,
  type RequestRefund,
  refundReasons,
} from "./refunds.ts";
export type { ChangeReview, ModeratedReview, PostReview, Review } from "./reviews.ts";
export { type ReceiptOfRun, RunReceipt } from "./run-receipts.ts";
export type { AdminOrder, AdminOrderDetail, Sale } from "./sales.ts";
export {
  type ChangePassword,
  type LogIn,
  MIN_PASSWORD,
  NewPassword,
  type Register,
  type TwoFactor,
  type Verify,
} from "./sign-in.ts";
export {
  ImportedChange,
  ImportedProduct,
  type ImportResult,
  MAX_IMPORTED_BYTES,
  MAX_IMPORTED_PRODUCTS,
} from "./transfer.ts";
export { VARIABLE_NAME, type Variable } from "./variables.ts";
export { SEMANTIC_VERSION, SemanticVersion, type Version, type VersionDetail } from "./versions.ts";
export { hasInvisible, toVisibleLine, toVisibleText, visibleLine, visibleText } from "./visible-text.ts";
export type {
  AdminWebhookEndpoint,
  ChangeWebhookEndpoint,
  CreateWebhookEndpoint,
  DeliveryAttempt,
  DeliveryStatus,
  NewWebhookEndpoint,
  RecoverWebhook,
  RotatedWebhookSecret,
  RotateWebhookSecret,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookEndpoint,
  WebhookRecovery,
  WebhookStats,
} from "./webhooks.ts";
export type {
  CallbackSecret,
  ExecuteWorkflow,
  NewCallbackSecret,
  WorkflowExecution,
  WorkflowStep,
} from "./workflow-runs.ts";
