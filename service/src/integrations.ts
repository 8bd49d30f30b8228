import { hkdfSync } from "node:crypto";
import { join } from "node:path";
import type pg from "pg";
import {
  type EgressGuard,
  findUrlProblem,
  parseAllowedTargets,
  parseUrl,
} from "./core/config/allowed-targets.ts";
import type { Config, StripeSettings } from "./core/config/config.ts";
import { parseS3Url } from "./core/config/s3-url.ts";
import type { Context } from "./core/context.ts";
import { type ListeningAddress, originAt } from "./core/loopback.ts";
import { parseMailbox } from "./core/mailbox.ts";
import { firstOf, required } from "./core/required.ts";
import type { Metrics } from "./core/telemetry/metrics.ts";
import { serverAttributes } from "./core/telemetry/tracing.ts";
import {
  type AiProviders,
  defaultDeadlines,
  type ProviderKey,
} from "./integrations/ai-providers/ai-provider.ts";
import type { AnswerMemory } from "./integrations/ai-providers/answer-memory.ts";
import { telemetryNameOf, withTelemetry } from "./integrations/ai-providers/call-telemetry.ts";
import { withBreaker } from "./integrations/ai-providers/circuit-breaker.ts";
import { baseUrlOf } from "./integrations/ai-providers/models.ts";
import { createSandbox, withSandbox } from "./integrations/ai-providers/sandbox.ts";
import { createSdkProviders, type SdkProvidersOptions } from "./integrations/ai-providers/sdk-providers.ts";
import { createSiteVerifyCaptcha, noCaptcha } from "./integrations/captcha/captcha.ts";
import { CircuitBreaker, type CircuitBreakerOptions } from "./integrations/egress/circuit-breaker.ts";
import { createGuardedFetch } from "./integrations/egress/guarded-fetch.ts";
import { createPoster, postDeadlines } from "./integrations/egress/post.ts";
import { createDevEmailSender } from "./integrations/email/dev-sender.ts";
import type { EmailSender } from "./integrations/email/email-sender.ts";
import { noEmailSender } from "./integrations/email/no-sender.ts";
import { createIdentityProviders } from "./integrations/identity-providers/identity-provider.ts";
import { fakePages, TEST_PAYMENTS_PATH } from "./integrations/payments/fake-pages.ts";
import { noPayments } from "./integrations/payments/no-payments.ts";
import type { Payments } from "./integrations/payments/payments.ts";
import { postgresReferences } from "./integrations/payments/stripe-references.ts";
import { createDiskStorage } from "./integrations/storage/disk.ts";
import type { Storage } from "./integrations/storage/storage.ts";
import { createFlatTaxes, noTaxes, type Taxes } from "./integrations/taxes/taxes.ts";

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** Each word comes in a frame of some 250 bytes: a long answer is 30 MB of them. */
const MAX_STREAM_BYTES = 256 * 1024 * 1024;
const IDENTITY_PROVIDER_MS = 5_000;
const CAPTCHA_MS = 5_000;

/** Whom tests put in the place of the world. */
export interface IntegrationOverrides {
  providers?: Partial<SdkProvidersOptions>;
  deadlines?: Partial<typeof defaultDeadlines>;
  breaker?: CircuitBreakerOptions;
  payments?: Payments;
  taxes?: Taxes;
  /** How long a call to GitHub or Google may take. */
  identityProviderMs?: number;
  mail?: EmailSender;
  postDeadlines?: Partial<typeof postDeadlines>;
  /** All addresses of a host that users gave. */
  resolve?: (host: string) => Promise<string[]>;
}

/** Everybody whom the service talks to. */
export interface OpenIntegrations {
  ports: Context["integrations"];
  /** Where the service itself listens, once it does: what users give must not lead there. */
  onListening(address: ListeningAddress): void;
  close(): Promise<void>;
}

interface IntegrationNeeds extends Pick<Context, "pool" | "now" | "metrics"> {
  /** Where browsers reach the service. */
  origin: () => string;
  answerMemory: AnswerMemory;
}

export async function openIntegrations(
  config: Config,
  { pool, now, metrics, origin, answerMemory }: IntegrationNeeds,
  overrides: IntegrationOverrides,
): Promise<OpenIntegrations> {
  let own: ReturnType<EgressGuard["own"]> = null;
  const guard = createGuard(config, overrides, () => own);
  const payments = await openPayments(config, { pool, now, origin }, overrides.payments);
  const ai = openProviders(guard, metrics, overrides, answerMemory);
  const storage = await openStorage(config);
  const { identityProviderMs = IDENTITY_PROVIDER_MS } = overrides;
  const poster = createPoster(guard, { ...postDeadlines, ...overrides.postDeadlines });
  return {
    ports: {
      payments: payments.port,
      testPayments: payments.testPayments,
      taxes: overrides.taxes ?? openTaxes(config),
      ai,
      identityProviders: createIdentityProviders({ ...config, timeoutMs: identityProviderMs }),
      emailSender: overrides.mail ?? (await openMail(config)),
      storage,
      poster,
      captcha: config.captcha ? createSiteVerifyCaptcha(config.captcha, CAPTCHA_MS) : noCaptcha,
      findUrlProblem: (url) => findUrlProblem(guard, url),
    },
    onListening: ({ address, port }) => {
      own = { addresses: [address], port };
      payments.listening(address, port);
    },
    async close() {
      await ai.close?.();
      await payments.close();
      await storage.close();
      await poster.close();
    },
  };
}

const createGuard = (
  { allowedTargets, publicUrl, environment }: Config,
  { resolve }: IntegrationOverrides,
  own: EgressGuard["own"],
): EgressGuard => ({
  allowed: parseAllowedTargets(allowedTargets),
  own,
  publicUrl: publicUrl ? parseUrl(publicUrl) : null,
  ownPathsAllowed: environment === "test" ? ["/dev/hooks/"] : [],
  ...(resolve && { resolve }),
});

interface PaymentsNeeds {
  pool: pg.Pool;
  now: () => Date;
  /** Where browsers reach the service. */
  origin: () => string;
}

async function openPayments(config: Config, { pool, now, origin }: PaymentsNeeds, given?: Payments) {
  const alone = { testPayments: null, listening: () => {}, close: async () => {} };
  if (given) return { port: given, ...alone };
  if (config.stripe) return { port: await openStripe(config, config.stripe, pool), ...alone };
  if (config.environment === "production") return { port: noPayments, ...alone };
  const { startFakeProvider, openPostgresStore, createFakePayments: fakePayments } = await loadTestPayments();
  const provider = await startFakeProvider({
    environment: config.environment,
    // The same in all processes: a webhook of one may reach another.
    secret: Buffer.from(hkdfSync("sha256", firstOf(config.sessionKeys), "", "stoa test payments", 32)),
    store: await openPostgresStore(pool),
    now,
    pagesUrl: () => origin() + TEST_PAYMENTS_PATH,
  });
  return {
    port: fakePayments({ origin: provider.origin, secret: provider.secret, now }),
    testPayments: fakePages(provider.origin),
    listening: (address: string, port: number) => {
      // A worker has no door for them.
      if (config.roles.api)
        provider.sendWebhooksTo(`http://${toReachableHost(address)}:${port}/payments/webhooks/fake`);
    },
    close: () => provider.close(),
  };
}

/** The fake provider is a development dependency, which an installation for production leaves out. */
async function loadTestPayments() {
  try {
    return await import("./integrations/payments/fake-payments.ts");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new Error(
      "A test environment needs the test payment provider, which is not installed. Install it with `npm ci`, set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET of Stripe's test mode, or set STOA_ENVIRONMENT=production.",
      { cause },
    );
  }
}

/** Where a process reaches itself that listens there. */
function toReachableHost(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  if (address === "::") return "[::1]";
  return address.includes(":") ? `[${address}]` : address;
}

/** Stripe's client is loaded where there is an account. */
async function openStripe({ publicUrl, host, port }: Config, settings: StripeSettings, pool: pg.Pool) {
  const { createStripePayments: stripePayments } = await import("./integrations/payments/stripe.ts");
  const returnUrl = () => publicUrl ?? originAt(host, port);
  return stripePayments({ ...settings, references: postgresReferences(pool), returnUrl });
}

const openTaxes = ({ taxRates, taxInclusive }: Config): Taxes =>
  taxRates.size === 0 ? noTaxes : createFlatTaxes(taxRates, taxInclusive);

/** The client of mail servers is loaded where there is one. */
export async function openMail({ mail, smtpUrl, mailFrom }: Config): Promise<EmailSender> {
  if (mail === "off") return noEmailSender;
  if (mail === "dev") return createDevEmailSender((line) => console.log(line));
  const { createSmtpSender: smtpMail } = await import("./integrations/email/smtp-sender.ts");
  return smtpMail(required(smtpUrl, "smtpUrl"), required(parseMailbox(mailFrom), "mailFrom"));
}

/** The client of S3 is loaded where there is one. */
export async function openStorage({ s3Url, dataDir }: Config): Promise<Storage> {
  if (!s3Url) return createDiskStorage(join(dataDir, "files"));
  const { createS3Storage: s3Storage } = await import("./integrations/storage/s3.ts");
  return s3Storage(parseS3Url(s3Url));
}

function openProviders(
  guard: EgressGuard,
  metrics: Metrics,
  overrides: IntegrationOverrides,
  answerMemory: AnswerMemory,
): AiProviders {
  const deadlines = { ...defaultDeadlines, ...overrides.deadlines };
  const safe = createGuardedFetch(guard, {
    connectMs: deadlines.connectMs,
    headersMs: deadlines.firstByteMs,
    bodyIdleMs: deadlines.idleMs,
    maxResponseBytes: MAX_ANSWER_BYTES,
    maxStreamBytes: MAX_STREAM_BYTES,
  });
  const sdk = createSdkProviders({
    fetch: safe.fetch,
    postText: safe.postText,
    deadlines,
    answerMemory,
    ...overrides.providers,
  });
  const addressOf = (key: ProviderKey) => baseUrlOf({ baseUrls: overrides.providers?.baseUrls ?? {} }, key);
  // Within the breaker: what it refuses is no call.
  const providers = withBreaker(
    withTelemetry(sdk, metrics, addressOf),
    new CircuitBreaker(overrides.breaker),
    (key) =>
      metrics.circuitOpenings(1, {
        "gen_ai.provider.name": telemetryNameOf(key.provider),
        // Of servers that people name themselves there may be any number.
        ...(key.baseUrl === null && serverAttributes(addressOf(key))),
      }),
  );
  const sandbox = withTelemetry(createSandbox(), metrics, () => undefined);
  return { ...withSandbox(providers, sandbox), close: () => safe.close() };
}
