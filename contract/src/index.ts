import * as account from "./accounts/account.ts";
import * as keys from "./accounts/keys.ts";
import * as notifications from "./accounts/notifications.ts";
import * as oauth from "./accounts/oauth.ts";
import * as requestLogs from "./accounts/request-logs.ts";
import * as signIn from "./accounts/sign-in.ts";
import * as twoFactor from "./accounts/two-factor.ts";
import * as accountView from "./backoffice/account-view.ts";
import * as admin from "./backoffice/admin.ts";
import * as adminStats from "./backoffice/admin-stats.ts";
import * as backups from "./backoffice/backups.ts";
import * as operation from "./backoffice/operation.ts";
import * as catalogue from "./catalog/catalog.ts";
import * as draftScans from "./catalog/draft-scans.ts";
import * as files from "./catalog/files.ts";
import * as transfer from "./catalog/import-export.ts";
import * as moderation from "./catalog/moderation.ts";
import * as productChecks from "./catalog/product-checks.ts";
import * as productDrafts from "./catalog/product-drafts.ts";
import * as products from "./catalog/products.ts";
import * as reviews from "./catalog/reviews.ts";
import * as scoreCard from "./catalog/score-card.ts";
import * as sellers from "./catalog/sellers.ts";
import * as testSets from "./catalog/test-sets.ts";
import * as versions from "./catalog/versions.ts";
import * as wishlist from "./catalog/wishlist.ts";
import * as analytics from "./commerce/analytics.ts";
import * as analyticsCustomers from "./commerce/analytics-customers.ts";
import * as analyticsEntries from "./commerce/analytics-entries.ts";
import * as analyticsFunnel from "./commerce/analytics-funnel.ts";
import * as discounts from "./commerce/discounts.ts";
import * as disputes from "./commerce/disputes.ts";
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
import * as evaluationProof from "./execution/evaluation-proof.ts";
import * as evaluations from "./execution/evaluations.ts";
import * as executions from "./execution/executions.ts";
import * as models from "./execution/models.ts";
import * as openai from "./execution/openai.ts";
import * as reEvaluations from "./execution/re-evaluations.ts";
import * as runReceipts from "./execution/run-receipts.ts";
import * as tryOuts from "./execution/try-outs.ts";
import * as workflowRuns from "./execution/workflow-runs.ts";

/** Every endpoint under its operation id. */
export const api = {
  products: {
    list: catalogue.list,
    facets: catalogue.facets,
    get: products.get,
    create: products.create,
    update: products.update,
    publish: products.publish,
    withdraw: products.withdraw,
    unpublish: products.unpublish,
    delete: products.deleteProduct,
    history: products.history,
    similar: products.similar,
    scan: draftScans.scan,
    draft: {
      get: productDrafts.get,
      set: productDrafts.set,
    },
    report: moderation.report,
    export: transfer.exportProducts,
    import: transfer.importProducts,
    runCounts: executions.runCounts,
    versions: {
      list: versions.list,
      get: versions.get,
    },
    scoreCard: {
      get: scoreCard.get,
    },
    testSet: {
      get: testSets.get,
      replace: testSets.replace,
      import: testSets.importFile,
      export: testSets.exportFile,
    },
  },
  files: {
    create: files.createFile,
    delete: files.deleteFile,
  },
  images: {
    create: files.createImage,
    update: files.updateImage,
    delete: files.deleteImage,
  },
  categories: {
    list: catalogue.categories,
  },
  tags: {
    list: catalogue.tags,
  },
  sellers: {
    get: sellers.get,
  },
  wishlist: {
    list: wishlist.list,
    add: wishlist.add,
    remove: wishlist.remove,
  },
  reviews: {
    list: reviews.list,
    listReceived: reviews.listReceived,
    get: reviews.get,
    create: reviews.create,
    update: reviews.update,
    delete: reviews.deleteReview,
    reply: reviews.reply,
    deleteReply: reviews.deleteReply,
    report: reviews.report,
  },
  purchases: {
    create: purchases.create,
    quote: purchases.quote,
    list: purchases.list,
    get: purchases.get,
  },
  refunds: {
    create: refunds.create,
    list: refunds.list,
    get: refunds.get,
    approve: refunds.approve,
    reject: refunds.reject,
    cancel: refunds.cancel,
  },
  sales: {
    list: sales.list,
    quote: sales.quote,
    get: sales.get,
    runs: executions.saleRuns,
  },
  balance: {
    get: payouts.balance,
    maturities: payouts.maturities,
  },
  payouts: {
    list: payouts.list,
    get: payouts.get,
    items: payouts.items,
    statement: payouts.statement,
    create: payouts.create,
    account: {
      get: payouts.account,
      set: payouts.setAccount,
      onboard: payouts.onboard,
    },
  },
  paymentMethods: {
    list: paymentMethods.list,
    create: paymentMethods.create,
    startSetup: paymentMethods.startSetup,
    delete: paymentMethods.deleteMethod,
    setDefault: paymentMethods.setDefault,
  },
  discountCodes: {
    list: discounts.list,
    get: discounts.get,
    create: discounts.create,
    update: discounts.update,
    delete: discounts.deleteCode,
  },
  analytics: {
    products: analytics.products,
    exportProducts: analytics.exportProducts,
    revenue: analytics.revenue,
    exportRevenue: analytics.exportRevenue,
    customers: analyticsCustomers.customers,
    exportCustomers: analyticsCustomers.exportCustomers,
    funnel: analyticsFunnel.funnel,
    entries: analyticsEntries.entries,
  },
  evaluations: {
    create: evaluations.create,
    estimate: evaluations.estimate,
    list: evaluations.list,
    get: evaluations.get,
    cancel: evaluations.cancel,
    proof: evaluationProof.proof,
  },
  reEvaluations: {
    get: reEvaluations.get,
    set: reEvaluations.set,
    delete: reEvaluations.turnOff,
  },
  ai: {
    execute: executions.execute,
    estimate: estimates.estimate,
    productRuns: executions.productRuns,
    executions: {
      list: executions.executions,
      get: executions.execution,
      events: executions.executionEvents,
      cancel: executions.cancelExecution,
      delete: executions.deleteExecution,
      share: executions.shareExecution,
      unshare: executions.unshareExecution,
      receipt: runReceipts.executionReceipt,
      steps: workflowRuns.steps,
      retry: workflowRuns.retry,
      approve: workflowRuns.approve,
      reject: workflowRuns.reject,
    },
    models: {
      list: models.list,
    },
    keys: {
      list: ai.keys,
      create: ai.createKey,
      update: ai.updateKey,
      delete: ai.deleteKey,
      verify: ai.verifyKey,
    },
    workflows: {
      execute: workflowRuns.execute,
      check: workflowRuns.check,
      test: workflowRuns.test,
    },
  },
  tryOuts: {
    get: tryOuts.get,
    set: tryOuts.set,
    delete: tryOuts.turnOff,
    run: tryOuts.run,
  },
  sharedRuns: {
    get: executions.sharedRun,
  },
  openai: {
    completions: {
      create: openai.complete,
    },
    models: {
      list: openai.models,
      get: openai.model,
    },
  },
  events: {
    list: events.list,
    get: events.get,
    stream: events.stream,
  },
  webhooks: {
    list: webhooks.list,
    create: webhooks.create,
    get: webhooks.get,
    update: webhooks.update,
    delete: webhooks.deleteEndpoint,
    rotateSecret: webhooks.rotateSecret,
    test: webhooks.test,
    deliveries: webhooks.deliveries,
    stats: webhooks.stats,
    recover: webhooks.recover,
    recovery: webhooks.recovery,
    egress: webhooks.egress,
  },
  deliveries: {
    get: webhooks.delivery,
    retry: webhooks.retry,
  },
  apiKeys: {
    list: keys.list,
    create: keys.create,
    update: keys.update,
    rotate: keys.rotate,
    revoke: keys.revoke,
  },
  requestLogs: {
    list: requestLogs.list,
  },
  notifications: {
    list: notifications.list,
    read: notifications.read,
  },
  account: {
    get: account.get,
    update: account.update,
    close: account.close,
    avatar: {
      create: account.createAvatar,
      delete: account.deleteAvatar,
    },
    referral: {
      get: referrals.get,
    },
    password: {
      update: signIn.updatePassword,
    },
    notifications: {
      get: notifications.getPreferences,
      update: notifications.updatePreferences,
    },
    sessions: {
      list: account.sessions,
      deleteOthers: account.endOthers,
      delete: account.endSession,
    },
    signInProviders: {
      list: account.signInProviders,
      unlink: account.unlinkProvider,
    },
    callbackSecret: {
      get: workflowRuns.callbackSecret,
      rotate: workflowRuns.rotateCallbackSecret,
    },
    usage: {
      get: plans.usage,
    },
    subscription: {
      get: plans.subscription,
      payments: plans.payments,
      update: plans.updateSubscription,
    },
  },
  signIn: {
    magicLink: signIn.magicLink,
    verify: signIn.verify,
    register: signIn.register,
    logIn: signIn.logIn,
    twoFactor: signIn.twoFactor,
    logOut: signIn.logOut,
    becomeFirstAdmin: admin.becomeFirst,
  },
  twoFactor: {
    get: twoFactor.state,
    setUp: twoFactor.setUp,
    confirm: twoFactor.confirm,
    renewBackupCodes: twoFactor.renewBackupCodes,
    disable: twoFactor.disable,
  },
  oauth: {
    clients: {
      list: oauth.clients,
      create: oauth.createClient,
      rotateSecret: oauth.rotateClientSecret,
      delete: oauth.deleteClient,
    },
    grants: {
      list: oauth.grants,
      revoke: oauth.revokeGrant,
    },
  },
  restores: {
    create: backups.createRestore,
    addPart: backups.addRestorePart,
    start: backups.startRestore,
    get: backups.getRestore,
  },
  admin: {
    health: {
      get: operation.health,
    },
    database: {
      get: operation.database,
    },
    configuration: {
      get: operation.configuration,
    },
    version: {
      get: operation.version,
    },
    queues: {
      list: operation.queues,
      run: operation.runQueue,
    },
    jobs: {
      list: operation.jobs,
      retry: operation.retryJob,
      retryAll: operation.retryJobs,
    },
    emails: {
      list: operation.emails,
      retry: operation.retryEmail,
      retryAll: operation.retryEmails,
    },
    ledgerVerifications: {
      list: backups.verifications,
      get: backups.verification,
      create: backups.startVerification,
    },
    backups: {
      list: backups.backups,
      get: backups.backup,
      create: backups.startBackup,
      createDownloadLink: backups.createDownloadLink,
      download: backups.downloadBackup,
      delete: backups.deleteBackup,
    },
    products: {
      list: moderation.list,
      checks: productChecks.get,
      approve: moderation.approve,
      reject: moderation.reject,
      suspend: moderation.suspend,
      reinstate: moderation.reinstate,
      dismissReports: moderation.dismissReports,
      refundBuyers: refunds.refundBuyers,
    },
    refunds: {
      list: refunds.listAllRefunds,
    },
    disputes: {
      list: disputes.all,
    },
    orders: {
      refund: refunds.refundOrder,
      list: sales.orders,
      get: sales.order,
    },
    users: {
      list: admin.users,
      get: admin.user,
      update: admin.updateUser,
      ban: admin.ban,
      unban: admin.unban,
      endSessions: admin.endSessions,
    },
    audit: {
      list: admin.audit,
    },
    oauthClients: {
      list: admin.oauthClients,
    },
    stats: {
      get: adminStats.stats,
    },
    view: {
      start: accountView.start,
      end: accountView.end,
    },
    reviews: {
      list: reviews.moderated,
      hide: reviews.hide,
      restore: reviews.restore,
    },
    payouts: {
      list: payouts.all,
    },
    webhooks: {
      list: webhooks.all,
    },
  },
};

interface EndpointTree {
  [name: string]: Endpoint | EndpointTree;
}

const isEndpoint = (node: Endpoint | EndpointTree): node is Endpoint => typeof node["method"] === "string";

const listEndpoints = (tree: EndpointTree): Endpoint[] =>
  Object.values(tree).flatMap((node) => (isEndpoint(node) ? [node] : listEndpoints(node)));

export const endpoints: Endpoint[] = listEndpoints(api);

export type {
  Account,
  AccountView,
  CloseAccount,
  Session,
  SignInProviders,
  UpdateAccount,
} from "./accounts/account.ts";
export { identityProviders } from "./accounts/account.ts";
export { Address } from "./accounts/address.ts";
export { isCountry } from "./accounts/countries.ts";
export type {
  ApiKey,
  ApiKeyStatus,
  CreateApiKey,
  NewApiKey,
  RotatedApiKey,
  UpdateApiKey,
} from "./accounts/keys.ts";
export {
  type MarkNotificationsRead,
  NOTIFICATION_RETENTION_DAYS,
  type Notification,
  type NotificationKind,
  type NotificationPreferences,
  notificationEmails,
  notificationKinds,
  type notificationSubjects,
  type UpdateNotificationPreferences,
} from "./accounts/notifications.ts";
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
export { type LoggedRequest, REQUEST_LOG_RETENTION_DAYS } from "./accounts/request-logs.ts";
export { Handle, type ProfileLink } from "./accounts/seller-profile.ts";
export {
  type ChangePassword,
  type LogIn,
  MIN_PASSWORD,
  NewPassword,
  type Register,
  type VerifyToken,
  type VerifyTwoFactor,
} from "./accounts/sign-in.ts";
export { ACCOUNT_VIEW_MINUTES, type StartAccountView } from "./backoffice/account-view.ts";
export type {
  AdminOAuthClient,
  AdminUser,
  AdminUserDetail,
  AuditEntry,
  UpdateUser,
} from "./backoffice/admin.ts";
export type { Stats } from "./backoffice/admin-stats.ts";
export {
  type Backup,
  type LedgerVerification,
  MAX_RESTORE_PART_BYTES,
  type Restore,
} from "./backoffice/backups.ts";
export type {
  DatabaseReport,
  Health,
  Job,
  Queue,
  QueuedEmail,
  Setting,
  VersionReport,
} from "./backoffice/operation.ts";
export type { Facets } from "./catalog/catalog.ts";
export { contentPreview } from "./catalog/content-preview.ts";
export type { DraftScan, ScanDraft } from "./catalog/draft-scans.ts";
export {
  MAX_FILE_BYTES,
  MAX_IMAGE_BYTES,
  MAX_IMAGES,
  type ProductFile,
  type ProductImage,
  type UpdateImage,
} from "./catalog/files.ts";
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
export type { ModeratedProduct, ReportProduct, SuspendProduct } from "./catalog/moderation.ts";
export type { ProductChecks } from "./catalog/product-checks.ts";
export type { ProductDraft, SetProductDraft } from "./catalog/product-drafts.ts";
export type {
  ProductScan,
  ScanBadge,
  ScanFinding,
  ScanFindingKind,
  ScanSeverity,
} from "./catalog/product-scans.ts";
export {
  type CreateProduct,
  MAX_SAMPLE_CHARACTERS,
  MAX_SAMPLE_LEVELS,
  MAX_SAMPLE_MEMBERS,
  MAX_SIMILAR,
  type ProductCard,
  type ProductDetail,
  type ProductSample,
  type ProductWarning,
  productTypes,
  type SampleInput,
  type UpdateProduct,
} from "./catalog/products.ts";
export type {
  CreateReview,
  ModeratedReview,
  ReceivedReview,
  Review,
  UpdateReview,
} from "./catalog/reviews.ts";
export type { Regression, ScoreCard } from "./catalog/score-card.ts";
export type { Seller } from "./catalog/sellers.ts";
export {
  MAX_TEST_CASES,
  type TestCaseInput,
  type TestSet,
  type TestSetFormat,
  type TestSetImportResult,
} from "./catalog/test-sets.ts";
export { SEMANTIC_VERSION, SemanticVersion, type Version, type VersionDetail } from "./catalog/versions.ts";
export { MAX_WISHLIST_ENTRIES } from "./catalog/wishlist.ts";
export type { ProductAnalytics, RevenueAnalytics, RevenueGroup } from "./commerce/analytics.ts";
export type { CustomerAnalytics } from "./commerce/analytics-customers.ts";
export type { AnalyticsEntry, LedgerFigure } from "./commerce/analytics-entries.ts";
export type { AnalyticsFunnel } from "./commerce/analytics-funnel.ts";
export type {
  CreateDiscountCode,
  DiscountCode,
  DiscountStatus,
  UpdateDiscountCode,
} from "./commerce/discounts.ts";
export type { AdminDispute } from "./commerce/disputes.ts";
export type { CardSetup, PaymentMethod } from "./commerce/payment-methods.ts";
export type {
  AdminPayout,
  Balance,
  CreatePayout,
  Maturity,
  Onboarding,
  Payout,
  PayoutAccount,
  PayoutDetail,
  PayoutItem,
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
  PurchaseQuote,
  QuotePurchase,
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
  type RefundRuns,
  type RefundStatus,
  refundReasons,
} from "./commerce/refunds.ts";
export type {
  AdminOrder,
  AdminOrderDetail,
  QuoteSale,
  Sale,
  SaleDetail,
  SaleQuote,
} from "./commerce/sales.ts";
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
export { type EmbeddingProvider, embeddingProviders, type Provider, providers } from "./core/providers.ts";
export type { SignedRunReceipt } from "./core/signed-run-receipt.ts";
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
export type { EvaluationProof, EvaluationStatement } from "./execution/evaluation-proof.ts";
export {
  type EvaluateProduct,
  type Evaluation,
  type EvaluationDetail,
  type EvaluationEstimate,
  type EvaluationStarter,
  type EvaluationStatus,
  MAX_EXCERPT_CHARACTERS,
  MAX_JUDGE_CALLS_OF_COLUMN,
  MAX_RUNS_OF_COLUMN,
} from "./execution/evaluations.ts";
export {
  type AcceptedExecution,
  type Execute,
  type Execution,
  type ExecutionDetail,
  type ExecutionResult,
  type ExecutionShare,
  executionStatuses,
  executionTypes,
  type ProductRunCounts,
  type ProductRuns,
  type PromptDraft,
  type SaleRuns,
  type SharedRun,
  TimeoutSeconds,
} from "./execution/executions.ts";
export type { AiModel, ModelMode } from "./execution/models.ts";
export {
  type ChatCompletion,
  type CreateChatCompletion,
  OpenAiError,
  type OpenAiModel,
} from "./execution/openai.ts";
export type { ReEvaluation, SetReEvaluation } from "./execution/re-evaluations.ts";
export { RunReceipt } from "./execution/run-receipts.ts";
export type { SetTryOut, Try, TryOut, TryResult } from "./execution/try-outs.ts";
export { MAX_TRY_OUT_CHARACTERS, MAX_TRY_OUT_CONTENT } from "./execution/try-outs.ts";
export type {
  CallbackSecret,
  CheckWorkflow,
  ExecuteWorkflow,
  NewCallbackSecret,
  TestWorkflow,
  WorkflowCheck,
  WorkflowExecution,
  WorkflowStep,
} from "./execution/workflow-runs.ts";
export {
  FOREIGN_TAG,
  listTemplateVariables,
  parseTemplate,
  type Template,
} from "./formats/prompt-template.ts";
export { VARIABLE_NAME, type Variable } from "./formats/variables.ts";
