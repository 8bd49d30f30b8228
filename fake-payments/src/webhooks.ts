import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { signWebhook } from "./signature.ts";

/** What changed; the receiver reads the object by this id. */
export type PaymentEvent =
  | { about: "payment"; orderId: string }
  | { about: "refund"; refundId: string }
  | { about: "payout"; payoutId: string }
  | { about: "dispute"; disputeId: string };

/** The delay before an event is sent, and before each retry. */
export interface WebhookDelays {
  /** Usually after the answer, which receivers must not rely on. */
  firstMs: number;
  againMs: number[];
}

const WAITS: WebhookDelays = { firstMs: 50, againMs: [100, 500, 2_000] };
const DEADLINE_MS = 5_000;

/** Events may arrive late, twice or never, as with every provider. */
export interface WebhookSender {
  /** The webhook URL; null: none. */
  postTo(url: string | null): void;
  /** Resolves when the event is delivered or its retries are used up. */
  send(event: PaymentEvent): Promise<void>;
  sendLater(event: PaymentEvent): void;
  close(): void;
}

export function createWebhookSender(secret: Buffer, now: () => Date, waits = WAITS): WebhookSender {
  const closing = new AbortController();
  let target: string | null = null;

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal, ref: false });

  async function isAccepted(url: string, body: string): Promise<boolean> {
    const headers = {
      "content-type": "application/json",
      "fake-signature": signWebhook(secret, body, now()),
    };
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(DEADLINE_MS)]);
    try {
      const response = await fetch(url, { method: "POST", headers, body, signal });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  async function send(event: PaymentEvent): Promise<void> {
    if (!target) return;
    const url = target;
    const body = JSON.stringify({ id: `ntc_${randomUUID()}`, ...event });
    for (const wait of waits.againMs) {
      if (await isAccepted(url, body)) return;
      await pause(wait);
    }
    await isAccepted(url, body);
  }

  const unlessClosed = (error: unknown) => {
    if (!closing.signal.aborted) throw error;
  };
  return {
    postTo(url) {
      target = url;
    },
    send: (event) => send(event).catch(unlessClosed),
    sendLater(event) {
      if (!target) return;
      void pause(waits.firstMs)
        .then(() => send(event))
        .catch(unlessClosed);
    },
    close: () => closing.abort(),
  };
}
