import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { accountEndpoints } from "./accounts.ts";
import { bankEndpoints } from "./bank.ts";
import { chargeEndpoints } from "./charges.ts";
import { type Provider, type Reply, refusal, send } from "./http.ts";
import { listEndpoints } from "./lists.ts";
import type { FakeStore } from "./store.ts";
import { transferEndpoints } from "./transfers.ts";
import { createWebhookSender, type WebhookDelays } from "./webhooks.ts";

/**
 * A payment provider to develop and test against: it moves no money, and is real in all else. It speaks HTTP, keeps
 * its own books, posts signed webhooks, and knows the marketplace only by what is sent.
 */
export interface FakeProvider {
  origin: string;
  /** Signs its webhooks. */
  secret: Buffer;
  /** Where its webhooks go from now on. */
  sendWebhooksTo(url: string | null): void;
  close(): Promise<void>;
}

interface FakeProviderOptions {
  /** The environment of the service. The provider starts in "test" alone. */
  environment?: string;
  store: FakeStore;
  now: () => Date;
  /** Any free port unless given. */
  port?: number;
  /** The URL below which browsers reach its pages; its own origin unless given. */
  pagesUrl?: () => string;
  /** Tests bring their own, so that they need not wait. */
  webhookDelays?: WebhookDelays;
}

/** Starts the provider on a loopback port. In production it throws: an order would count as paid without any money. */
export async function startFakeProvider({
  environment = "test",
  store,
  now,
  port = 0,
  pagesUrl,
  webhookDelays,
}: FakeProviderOptions): Promise<FakeProvider> {
  if (environment !== "test")
    throw new Error(`The fake payment provider moves no money and does not start in ${environment}`);
  const secret = randomBytes(32);
  const webhooks = createWebhookSender(secret, now, webhookDelays);
  let origin = "";
  const pageUrl = (path: string) => new URL(`${pagesUrl?.() ?? origin}${path}`);
  const server = createServer((request, response) => {
    void answer({ store, now, webhooks, pageUrl }, request)
      .catch(() => refusal(500, "internal_error"))
      .then((reply) => send(response, reply));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
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
