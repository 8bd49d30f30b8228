import { ConnectionError } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { stoa } from "../api.ts";

/** Why a run failed, as its last event or the API says it. */
export interface RunFailure {
  code: string;
  message: string;
  details?: { retryAfter?: number; [name: string]: unknown };
}

export interface FollowedRun {
  /** `connecting`: no event yet. `interrupted`: the connection is lost, and is tried again. */
  phase: "connecting" | "following" | "interrupted" | "ended";
  /** A prompt's output so far. */
  text: string;
  /** Of a prompt that failed. */
  failure: RunFailure | null;
}

const RECONNECTS = 4;
const PAUSE_MS = 2_000;
/** A map has hundreds of items: their steps are read again at most this often. */
const REFRESH_MS = 400;
/** Text is shown in pieces, since each one renders all of it anew: the longer the text, the fewer. */
const FLUSH_MS = 80;
const FLUSH_MS_PER_CHARACTER = 0.002;
const ENDS = /^execution\.(completed|failed|canceled)$/;

const START: FollowedRun = { phase: "connecting", text: "", failure: null };

/**
 * Reads the events of a run while it is active, from its beginning. Nothing depends on this reader: the run goes on without it,
 * and a page that was loaded anew reads the same events.
 */
export function useFollowedRun(id: string | undefined, isActive: boolean): FollowedRun {
  const client = useQueryClient();
  const [followed, setFollowed] = useState<{ id: string | undefined; run: FollowedRun }>({ id, run: START });
  const activeId = useRef<string>(undefined);
  useEffect(() => {
    const refresh = () => client.invalidateQueries({ queryKey: ["execution", id] });
    const wasActive = activeId.current === id;
    activeId.current = isActive ? id : undefined;
    if (id === undefined) return;
    if (!isActive) {
      // The run and its steps are two answers: the one with the end may be younger than the one without the last step.
      if (wasActive) void refresh();
      return;
    }
    const reader = new AbortController();
    const show = (run: FollowedRun) => !reader.signal.aborted && setFollowed({ id, run });
    void followRun(id, reader.signal, show, refresh);
    return () => reader.abort();
  }, [client, id, isActive]);
  return followed.id === id ? followed.run : START;
}

/** What the end of a run changes elsewhere: the lists of runs, and a key that its provider refused. */
export function useEndOfRun(id: string | undefined, status: string | undefined): void {
  const client = useQueryClient();
  useEffect(() => {
    if (id === undefined || status === undefined || !ENDED.has(status)) return;
    void client.invalidateQueries({ queryKey: ["executions"] });
    if (status === "failed") void client.invalidateQueries({ queryKey: ["provider-keys"] });
  }, [client, id, status]);
}

const ENDED = new Set(["completed", "failed", "canceled"]);

/** Resolves at the end of the run, or when the reader leaves. */
async function followRun(
  id: string,
  signal: AbortSignal,
  show: (run: FollowedRun) => void,
  refresh: () => Promise<void>,
): Promise<void> {
  let run: FollowedRun = START;
  let lastEventId: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    show(run);
  };
  const flushSoon = () => {
    timer ??= setTimeout(flush, FLUSH_MS + run.text.length * FLUSH_MS_PER_CHARACTER);
  };
  let refreshed = 0;
  let planned: ReturnType<typeof setTimeout> | undefined;
  /** The first change at once, later ones together. */
  const refreshSteps = () => {
    planned ??= setTimeout(
      () => {
        planned = undefined;
        refreshed = performance.now();
        void refresh();
      },
      Math.max(0, refreshed + REFRESH_MS - performance.now()),
    );
  };
  const clearTimers = () => {
    clearTimeout(timer);
    clearTimeout(planned);
  };
  signal.addEventListener("abort", clearTimers, { once: true });
  while (!signal.aborted) {
    try {
      const query = lastEventId === undefined ? {} : { lastEventId };
      for await (const event of stoa.ai.executions.events(id, query, { signal, maxRetries: RECONNECTS })) {
        if (event.id !== "") lastEventId = event.id;
        run = { ...run, phase: "following" };
        if (event.type === "output.delta") run = { ...run, text: run.text + textOf(event.data) };
        else if (!ENDS.test(event.type)) refreshSteps();
        if (!ENDS.test(event.type)) {
          flushSoon();
          continue;
        }
        clearTimers();
        await refresh();
        const failure = event.type === "execution.failed" ? (event.data as RunFailure) : null;
        return show({ ...run, phase: "ended", failure: failure?.code ? failure : null });
      }
    } catch (error) {
      if (signal.aborted) return;
      // Deleted meanwhile, or the session ended: the query of the run shows it.
      if (!(error instanceof ConnectionError)) {
        await refresh();
        return show({ ...run, phase: "ended" });
      }
    }
    run = { ...run, phase: "interrupted" };
    show(run);
    await pause(signal);
  }
}

const textOf = (data: unknown): string => (data as { text: string }).text;

/** Until the next try: some time, or until the browser is online again. */
function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    window.addEventListener("online", stop, { once: true });
    signal.addEventListener("abort", stop, { once: true });
  });
}
