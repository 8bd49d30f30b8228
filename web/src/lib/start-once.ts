import { ConnectionError } from "@stoa/sdk";
import { useRef, useState } from "react";
import { noticeEndOfSession } from "../api.ts";
import { wait } from "./wait.ts";

interface StartOptions {
  idempotencyKey: string;
  maxRetries: number;
}

type Send<Body, Result> = (body: Body, options: StartOptions) => PromiseLike<Result>;

const REPEAT_MS = 800;

/**
 * Sends requests that cost money, each intent at most once: the same body after a lost connection has the same Idempotency-Key,
 * so that the service answers with what it did the first time.
 */
export class Intents {
  /** Keys of the requests that were not answered, by body. */
  readonly #unanswered = new Map<string, string>();

  async send<Body, Result>(send: Send<Body, Result>, body: Body): Promise<Result> {
    const text = JSON.stringify(body);
    const idempotencyKey = this.#unanswered.get(text) ?? crypto.randomUUID();
    this.#unanswered.set(text, idempotencyKey);
    try {
      // A refusal for its rate is shown at once, not waited for.
      const result = await repeatOnce(() => send(body, { idempotencyKey, maxRetries: 0 }));
      this.#unanswered.delete(text);
      return result;
    } catch (error) {
      if (!(error instanceof ConnectionError)) this.#unanswered.delete(text);
      noticeEndOfSession(error);
      throw error;
    }
  }
}

async function repeatOnce<Result>(send: () => PromiseLike<Result>): Promise<Result> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    await wait(REPEAT_MS);
    return send();
  }
}

interface Start<Body, Result> {
  isPending: boolean;
  error: unknown;
  /** Does nothing while a start is under way. undefined: it failed. */
  start: (body: Body) => Promise<Result | undefined>;
  clearError: () => void;
}

export function useStartOnce<Body, Result>(send: Send<Body, Result>): Start<Body, Result> {
  const [isPending, setPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isBusy = useRef(false);
  const [intents] = useState(() => new Intents());
  const start = async (body: Body) => {
    if (isBusy.current) return undefined;
    isBusy.current = true;
    setPending(true);
    setError(null);
    try {
      return await intents.send(send, body);
    } catch (failure) {
      setError(failure);
      return undefined;
    } finally {
      isBusy.current = false;
      setPending(false);
    }
  };
  return { isPending, error, start, clearError: () => setError(null) };
}
