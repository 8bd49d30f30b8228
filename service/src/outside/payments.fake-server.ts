import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { z } from "zod";
import { authorizePage, authorizePagePolicy, notFoundPage } from "./payments.fake-page.ts";
import type { Charge, ChargeStore, Ending } from "./payments.fake-store.ts";

/**
 * A payment provider to develop and test against: it moves no money, and is real in all else. It speaks HTTP, keeps
 * its own books, and knows the marketplace only by what is sent.
 */
export interface FakeProvider {
  origin: string;
  close(): Promise<void>;
}

interface FakeProviderOptions {
  store: ChargeStore;
  now: () => Date;
  /** Any free port unless given. */
  port?: number;
}

/** Starts the provider on a loopback port. */
export async function startFakeProvider({
  store,
  now,
  port = 0,
}: FakeProviderOptions): Promise<FakeProvider> {
  const server = createServer((request, response) => {
    void answer({ store, now }, request)
      .catch(() => refusal(500, "internal_error"))
      .then((reply) => send(response, reply));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Provider {
  store: ChargeStore;
  now: () => Date;
}

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body: string;
}

interface Method {
  brand: string;
  last4: string;
  outcome: { state: "succeeded" | "requires_action" } | { state: "declined"; declineCode: string };
}

/** The methods that exist, for everyone; a method's name tells how a charge of it ends. */
const methods = new Map<string, Method>([
  ["pm_test_ok", { brand: "visa", last4: "4242", outcome: { state: "succeeded" } }],
  [
    "pm_test_declined",
    { brand: "visa", last4: "0002", outcome: { state: "declined", declineCode: "card_declined" } },
  ],
  [
    "pm_test_insufficient_funds",
    { brand: "visa", last4: "9995", outcome: { state: "declined", declineCode: "insufficient_funds" } },
  ],
  ["pm_test_requires_action", { brand: "mastercard", last4: "3155", outcome: { state: "requires_action" } }],
]);

const ChargeRequest = z.strictObject({
  amountMinor: z.int().positive(),
  currency: z.string().length(3),
  methodId: z.string(),
  description: z.string(),
});
type ChargeRequest = z.infer<typeof ChargeRequest>;

interface Call {
  provider: Provider;
  request: IncomingMessage;
  url: URL;
  /** The part of the path that names a charge. */
  id: string;
}

const endpoints: [method: string, path: RegExp, answer: (call: Call) => Promise<Reply>][] = [
  ["POST", /^\/v1\/charges$/, makeCharge],
  ["GET", /^\/v1\/charges$/, findCharge],
  ["POST", /^\/v1\/charges\/([^/]+)\/confirm$/, (call) => endCharge(call, { state: "succeeded" })],
  ["POST", /^\/v1\/charges\/([^/]+)\/cancel$/, (call) => endCharge(call, { state: "canceled" })],
  ["GET", /^\/authorize\/([^/]+)$/, showAuthorizePage],
  ["POST", /^\/authorize\/([^/]+)$/, decide],
];

async function answer(provider: Provider, request: IncomingMessage): Promise<Reply> {
  const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
  for (const [method, path, endpoint] of endpoints) {
    const match = path.exec(url.pathname);
    if (match && method === request.method) return endpoint({ provider, request, url, id: match[1] ?? "" });
  }
  return refusal(404, "not_found");
}

/** Makes the charge that the key stands for, or finds it made: a repeat never charges again. */
async function makeCharge({ provider, request, url }: Call): Promise<Reply> {
  const orderId = request.headers["idempotency-key"];
  const asked = ChargeRequest.safeParse(await readJson(request));
  if (typeof orderId !== "string" || !asked.success) return refusal(400, "invalid_request");
  const method = methods.get(asked.data.methodId);
  if (!method) return refusal(404, "unknown_method");
  const kept = await provider.store.insertOrGet({
    id: `ch_${randomUUID()}`,
    orderId,
    ...asked.data,
    declineCode: null,
    ...method.outcome,
    createdAt: provider.now(),
  });
  return isWhatWasAsked(kept, asked.data) ? chargeReply(url, kept) : refusal(409, "idempotency_key_reused");
}

function isWhatWasAsked(kept: Charge, asked: ChargeRequest): boolean {
  return (Object.keys(asked) as (keyof ChargeRequest)[]).every((name) => kept[name] === asked[name]);
}

async function findCharge({ provider, url }: Call): Promise<Reply> {
  return chargeReply(url, await provider.store.findByOrder(url.searchParams.get("order") ?? ""));
}

/** Answers 200 with the charge as it then stands, also when it had ended before: the caller reads its state. */
async function endCharge({ provider, url, id }: Call, ending: Ending): Promise<Reply> {
  return chargeReply(url, await provider.store.setState(id, ending));
}

async function showAuthorizePage({ provider, id }: Call): Promise<Reply> {
  const charge = await provider.store.find(id);
  return charge ? page(200, authorizePage(charge)) : page(404, notFoundPage());
}

/** The buyer pressed a button: the charge ends, and the page is shown anew so that a reload sends nothing twice. */
async function decide({ provider, request, id }: Call): Promise<Reply> {
  const ending = endingByButton.get(new URLSearchParams(await readText(request)).get("decision"));
  if (!ending) return page(400, notFoundPage());
  if (!(await provider.store.setState(id, ending))) return page(404, notFoundPage());
  return { status: 303, headers: { location: `/authorize/${id}` }, body: "" };
}

const endingByButton = new Map<string | null, Ending>([
  ["approve", { state: "succeeded" }],
  ["decline", { state: "declined", declineCode: "authentication_failed" }],
]);

function chargeReply(url: URL, charge: Charge | null): Reply {
  if (!charge) return refusal(404, "charge_not_found");
  const { id, state, declineCode } = charge;
  const { brand, last4 } = methods.get(charge.methodId)!;
  const authorizeUrl = new URL(`/authorize/${id}`, url).href;
  return jsonReply(200, { id, state, declineCode, method: { brand, last4 }, authorizeUrl });
}

function refusal(status: number, error: string): Reply {
  return jsonReply(status, { error });
}

function jsonReply(status: number, body: unknown): Reply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function page(status: number, body: string): Reply {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": authorizePagePolicy,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  return { status, headers, body };
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers).end(body);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  try {
    return JSON.parse(await readText(request));
  } catch {
    return undefined;
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  return (await buffer(request)).toString("utf8");
}
