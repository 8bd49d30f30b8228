import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { accountEndpoints } from "./payments.fake-accounts.ts";
import { bankEndpoints } from "./payments.fake-bank.ts";
import { chargeEndpoints } from "./payments.fake-charges.ts";
import { type Provider, type Reply, refusal, send } from "./payments.fake-http.ts";
import { listEndpoints } from "./payments.fake-lists.ts";
import { type NoticeWaits, noticePost } from "./payments.fake-notices.ts";
import type { FakeStore } from "./payments.fake-store.ts";
import { transferEndpoints } from "./payments.fake-transfers.ts";

/**
 * A payment provider to develop and test against: it moves no money, and is real in all else. It speaks HTTP, keeps
 * its own books, posts signed notices, and knows the marketplace only by what is sent.
 */
export interface FakeProvider {
  origin: string;
  /** Signs its notices. */
  secret: Buffer;
  /** Where its notices go from now on. */
  postNoticesTo(url: string | null): void;
  close(): Promise<void>;
}

interface FakeProviderOptions {
  store: FakeStore;
  now: () => Date;
  /** Any free port unless given. */
  port?: number;
  /** The URL below which browsers reach its pages; its own origin unless given. */
  pagesUrl?: () => string;
  /** Tests bring their own, so that they need not wait. */
  noticeWaits?: NoticeWaits;
}

/** Starts the provider on a loopback port. */
export async function startFakeProvider({
  store,
  now,
  port = 0,
  pagesUrl,
  noticeWaits,
}: FakeProviderOptions): Promise<FakeProvider> {
  const secret = randomBytes(32);
  const notices = noticePost(secret, now, noticeWaits);
  let origin = "";
  const pageUrl = (path: string) => new URL(`${pagesUrl?.() ?? origin}${path}`);
  const server = createServer((request, response) => {
    void answer({ store, now, notices, pageUrl }, request)
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
    postNoticesTo: (url) => notices.postTo(url),
    close: () =>
      new Promise((resolve) => {
        notices.close();
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
