import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { z } from "zod";
import { pagePolicy } from "./html-pages.ts";
import type { FakeStore } from "./store.ts";
import type { WebhookSender } from "./webhooks.ts";

/** The dependencies of the endpoints. */
export interface Provider {
  store: FakeStore;
  now: () => Date;
  webhooks: WebhookSender;
  /** The URL of a page, for browsers. */
  pageUrl(path: string): URL;
}

export interface Call {
  provider: Provider;
  request: IncomingMessage;
  url: URL;
  /** The id in the path: of a charge, refund, payout or dispute. */
  id: string;
}

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body: string;
}

export type Endpoint = [method: string, path: RegExp, answer: (call: Call) => Promise<Reply>];

export const refusal = (status: number, error: string): Reply => jsonReply(status, { error });

export function jsonReply(status: number, body: unknown): Reply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

export function page(status: number, body: string): Reply {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": pagePolicy,
    // With no-referrer, browsers send `Origin: null` with the form.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  return { status, headers, body };
}

/** After a form: reloading the page sends nothing again. */
export const redirect = (location: string): Reply => ({ status: 303, headers: { location }, body: "" });

export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers).end(body);
}

export const readText = async (request: IncomingMessage): Promise<string> =>
  (await buffer(request)).toString("utf8");

/** null: the body does not match the schema. */
export async function readJson<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T | null> {
  try {
    return schema.parse(JSON.parse(await readText(request)));
  } catch {
    return null;
  }
}

/** null: the idempotency key is missing, or the body does not match the schema. */
export async function readKeyed<T>(request: IncomingMessage, schema: z.ZodType<T>) {
  const key = request.headers["idempotency-key"];
  const asked = await readJson(request, schema);
  return typeof key === "string" && asked ? { key, asked } : null;
}

/** Whether the stored object of an idempotency key equals the request. */
export const isWhatWasAsked = <T extends object>(kept: T, asked: Partial<T>): boolean =>
  (Object.keys(asked) as (keyof T)[]).every((name) => kept[name] === asked[name]);
