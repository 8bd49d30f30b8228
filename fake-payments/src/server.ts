import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { accountEndpoints } from "./accounts.ts";
import { bankEndpoints } from "./bank.ts";
import { cardEndpoints } from "./cards.ts";
import { chargeEndpoints } from "./charges.ts";
import { type Provider, type Reply, refusal, send } from "./http.ts";
import { listEndpoints } from "./lists.ts";
import type { FakeStore } from "./store.ts";
import { transferEndpoints } from "./transfers.ts";
import { createWebhookSender, type WebhookDelays } from "./webhooks.ts";

// `import` evaluates all exports of a module: of `node:http`, `WebSocket` loads Node's own undici, which takes 40 ms and 13 MB.
const { createServer } = process.getBuiltinModule("node:http");

/**
 * A payment provider for development and tests. It moves no money, but speaks HTTP, stores its own data and posts signed
 * webhooks. It knows the marketplace by its requests only.
 */
export interface FakeProvider {
  origin: string;
  /** For the signatures of its webhooks. */
  secret: Buffer;
  /** null: sends no webhooks. */
  sendWebhooksTo(url: string | null): void;
  close(): Promise<void>;
}

interface FakeProviderOptions {
  /** The service's environment. The provider starts only in "test". */
  environment?: string;
  store: FakeStore;
  now: () => Date;
  /** Signs the webhooks; default: a random one. */
  secret?: Buffer;
  /** Default: any free port. */
  port?: number;
  /** The base URL of its pages for browsers; default: its own origin. */
  pagesUrl?: () => string;
  /** Tests set short ones. */
  webhookDelays?: WebhookDelays;
}

/** Starts the provider on a loopback port. Throws in production, where orders would count as paid without money. */
export async function startFakeProvider({
  environment = "test",
  store,
  now,
  secret = randomBytes(32),
  port = 0,
  pagesUrl,
  webhookDelays,
}: FakeProviderOptions): Promise<FakeProvider> {
  if (environment !== "test")
    throw new Error(`The fake payment provider moves no money and does not start in ${environment}`);
  const webhooks = createWebhookSender(secret, now, webhookDelays);
  let origin = "";
  const pageUrl = (path: string) => new URL(`${pagesUrl?.() ?? origin}${path}`);
  const server = createServer((request, response) => {
    void answer({ store, now, webhooks, pageUrl }, request)
      .catch(() => refusal(500, "internal_error"))
      .then((reply) => send(response, reply));
  });
  await new Promise<void>((resolve, reject) => {
    // Not shared with other processes of node:cluster: each has a provider of its own.
    server.once("error", reject).listen({ port, host: "127.0.0.1", exclusive: true }, resolve);
  });
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    secret,
    sendWebhooksTo: (url) => webhooks.postTo(url),
    close: () =>
      new Promise((resolve) => {
        webhooks.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const endpoints = [
  ...accountEndpoints,
  ...cardEndpoints,
  ...chargeEndpoints,
  ...transferEndpoints,
  ...listEndpoints,
  ...bankEndpoints,
];

async function answer(provider: Provider, request: IncomingMessage): Promise<Reply> {
  const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
  for (const [method, path, endpoint] of endpoints) {
    const match = path.exec(url.pathname);
    if (match && method === request.method) return endpoint({ provider, request, url, id: match[1] ?? "" });
  }
  return refusal(404, "not_found");
}
