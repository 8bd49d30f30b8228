import { setTimeout as sleep } from "node:timers/promises";
import type { AccountEvent, Event } from "@stoa/sdk";
import { UsageError } from "../errors.ts";

/** How a receiver took an event. */
export interface Forwarded {
  /** null: no response. */
  status: number | null;
  /** Why there was no response. */
  error: string | null;
  attempts: number;
  /** Milliseconds of the last attempt. */
  durationMs: number;
}

export interface ForwarderOptions {
  url: URL;
  secret: string;
  /** How long a receiver that does not respond is tried. */
  retryMs: number;
  signal: AbortSignal;
  /** A receiver that was there does not respond. */
  onWait: (error: string) => void;
}

const PAUSE = { firstMs: 250, maxMs: 10_000 };
/** As long as the service waits for a receiver. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** After Ctrl-C, for the response to the event on its way: without it, the event would be sent again at the next start. */
const LAST_RESPONSE_MS = 2_000;

/** Posts events to a receiver as the service does: signed, and again while it does not respond. */
export class Forwarder {
  readonly #options: ForwarderOptions;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** A response of any status is an answer. Throws when the command ends before there is one. */
  async forward(event: AccountEvent | Event): Promise<Forwarded> {
    const { retryMs, signal, onWait } = this.#options;
    const body = JSON.stringify(event);
    const startedAt = performance.now();
    for (let attempts = 1; ; attempts++) {
      const attemptedAt = performance.now();
      const { status, error } = await this.#post(event.id, body, attempts);
      const durationMs = Math.round(performance.now() - attemptedAt);
      if (status !== null) return { status, error: null, attempts, durationMs };
      signal.throwIfAborted();
      const pauseMs = Math.min(PAUSE.firstMs * 2 ** (attempts - 1), PAUSE.maxMs);
      if (performance.now() - startedAt + pauseMs > retryMs)
        return { status: null, error, attempts, durationMs };
      if (attempts === 1) onWait(error);
      await sleep(pauseMs, undefined, { signal });
    }
  }

  async #post(id: string, body: string, attempt: number) {
    const { url, secret, signal } = this.#options;
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), RESPONSE_TIMEOUT_MS);
    const hurry = () => setTimeout(() => limit.abort(), LAST_RESPONSE_MS).unref();
    signal.addEventListener("abort", hurry, { once: true });
    try {
      const { sign } = await import("@stoa/sdk/webhooks");
      const signature = await sign(body, secret, { id });
      const headers = { ...signature, "x-service-attempt": String(attempt), "user-agent": "stoa-cli" };
      const response = await fetch(url, {
        ...{ method: "POST", headers, body, redirect: "manual", signal: limit.signal },
      });
      await response.body?.cancel();
      return { status: response.status, error: null };
    } catch (error) {
      const reason = limit.signal.aborted ? "no response in time" : reasonOf(error);
      return { status: null, error: reason };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", hurry);
    }
  }
}

/** `localhost:4242/hooks`, `4242` or a URL. */
export function toForwardUrl(text: string): URL {
  const address = /^\d+(\/|$)/.test(text) ? `localhost:${text}` : text;
  const withScheme = /^[a-z]+:\/\//i.test(address) ? address : `http://${address}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "")
    throw new UsageError(
      `${JSON.stringify(text)} is no address of a receiver`,
      "Write it as localhost:4242/path, or as a URL.",
    );
  url.hash = "";
  return url;
}

export const isThisMachine = ({ hostname }: URL): boolean =>
  /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** Why fetch failed: the reason is in the cause, and for several addresses in the first of its errors. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as {
    message: string;
    cause?: { code?: string; message?: string; errors?: { code?: string }[] };
  };
  return cause?.code ?? cause?.errors?.[0]?.code ?? cause?.message ?? message;
}
