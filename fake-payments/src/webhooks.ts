import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { signWebhook } from "./signature.ts";

/** What changed: the receiver reads the rest by this id. */
export type PaymentEvent =
  | { about: "payment"; orderId: string }
  | { about: "refund"; refundId: string }
  | { about: "payout"; payoutId: string }
  | { about: "dispute"; disputeId: string };

/** How long a event waits before it is sent, and then before each time that it is sent again. */
export interface WebhookDelays {
  /** Answers come first as a rule, though nobody may rely on it. */
  firstMs: number;
  againMs: number[];
}

const WAITS: WebhookDelays = { firstMs: 50, againMs: [100, 500, 2_000] };
const DEADLINE_MS = 5_000;

/** Tells the marketplace that something changed; it may come late, twice or never, as with every provider. */
export interface WebhookSender {
  /** Where webhooks go; null: nowhere yet. */
  postTo(url: string | null): void;
  /** Resolves when it was delivered or given up. */
  send(event: PaymentEvent): Promise<void>;
  /** Sends it in a while. */
  sendLater(event: PaymentEvent): void;
  close(): void;
}

export function createWebhookSender(secret: Buffer, now: () => Date, waits = WAITS): WebhookSender {
  const closing = new AbortController();
  let target: string | null = null;

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal, ref: false });

  async function isTaken(url: string, body: string): Promise<boolean> {
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
      if (await isTaken(url, body)) return;
      await pause(wait);
    }
    await isTaken(url, body);
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
