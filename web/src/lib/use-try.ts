import type { TryResult } from "@stoa/sdk";
import { useEffect, useRef, useState } from "react";
import { noticeEndOfSession, stoa } from "../api.ts";

export interface TryState {
  /** `waiting`: no word yet. */
  phase: "idle" | "waiting" | "writing" | "ended";
  text: string;
  /** Of a try that was answered, also if the answer is withheld. */
  result: Omit<TryResult, "output"> | null;
  error: unknown;
  /** The visitor stopped it. */
  isStopped: boolean;
}

export interface TryInput {
  variables: Record<string, string>;
  captcha?: string;
}

const IDLE: TryState = { phase: "idle", text: "", result: null, error: null, isStopped: false };
/** Text is shown in pieces, since each one renders all of it anew. */
const FLUSH_MS = 80;

/** A try of a product, one at a time. Leaving the page ends it. */
export function useTry(productId: string) {
  const [state, setState] = useState(IDLE);
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const isRunning = state.phase === "waiting" || state.phase === "writing";

  /** Resolves at the end of the try. */
  const start = async (input: TryInput): Promise<void> => {
    // The state is set too late for the second half of a double click.
    if (current.current) return;
    const reader = new AbortController();
    current.current = reader;
    setState({ ...IDLE, phase: "waiting" });
    let text = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (change: Partial<TryState>) => setState((old) => ({ ...old, ...change }));
    const flush = () => {
      timer = undefined;
      show({ phase: "writing", text });
    };
    try {
      // A refusal is shown at once, not waited for.
      const options = { signal: reader.signal, maxRetries: 0 };
      for await (const event of stoa.tryOuts.stream(productId, input, options)) {
        if (event.type === "output.delta") {
          text += event.data.text;
          timer ??= setTimeout(flush, FLUSH_MS);
          continue;
        }
        const isWithheld = event.type === "try.withheld";
        clearTimeout(timer);
        show({ phase: "ended", text: isWithheld ? "" : text, result: event.data });
      }
    } catch (error) {
      clearTimeout(timer);
      const isStopped = reader.signal.aborted;
      if (!isStopped) noticeEndOfSession(error);
      show({ phase: "ended", text, error: isStopped ? null : error, isStopped });
    } finally {
      current.current = undefined;
    }
  };
  const stop = () => current.current?.abort();
  return { ...state, isRunning, start, stop };
}
