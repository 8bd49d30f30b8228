import type { Quota } from "@stoa/contract";

declare module "../../core/context.ts" {
  interface Context {
    /** Counts requests for the rate limits. */
    counters: Counters;
  }
}

/** What may be asked under one key; all of its quotas hold at once. */
export interface Allowance {
  key: string;
  /** Each of a length of its own, the shortest first. */
  quotas: Quota[];
}

/** A quota's window as it stands: it begins with the first request in it, and its length is fixed. */
export interface Window {
  quota: Quota;
  used: number;
  /** null: no request has begun it. */
  endsAt: Date | null;
}

export interface Taken {
  allowed: boolean;
  /** In the order of the quotas. */
  windows: Window[];
}

/** Counts requests by key: in this process's memory, or in a store that all processes share. */
export interface Counters {
  /** Counts a request in every window; in none when one of them is full. */
  take(allowance: Allowance): Promise<Taken>;
  peek(allowance: Allowance): Promise<Window[]>;
  close(): Promise<void>;
}

export const isFull = ({ quota, used }: Window) => used >= quota.requests;

/** A flood of addresses must not eat the memory: past this the oldest windows are forgotten. */
const MAX_WINDOWS = 500_000;
const SWEEP_EVERY_MS = 60_000;

/** Counts in this process alone, by the given clock; exact, since nothing comes between looking and counting. */
export function memoryCounters(now: () => Date): Counters {
  const running = new Map<string, { used: number; endsAt: number }>();
  let sweptAt = 0;

  const nameOf = (key: string, { seconds }: Quota) => `${key}:${seconds}`;

  function look({ key, quotas }: Allowance, at: number): Window[] {
    return quotas.map((quota) => {
      const window = running.get(nameOf(key, quota));
      if (!window || window.endsAt <= at) return { quota, used: 0, endsAt: null };
      return { quota, used: window.used, endsAt: new Date(window.endsAt) };
    });
  }

  function count(key: string, { quota, used, endsAt }: Window, at: number): Window {
    const window = { used: used + 1, endsAt: endsAt?.getTime() ?? at + quota.seconds * 1000 };
    if (!endsAt) running.delete(nameOf(key, quota));
    running.set(nameOf(key, quota), window);
    return { quota, used: window.used, endsAt: new Date(window.endsAt) };
  }

  function sweep(at: number): void {
    if (at - sweptAt >= SWEEP_EVERY_MS) {
      sweptAt = at;
      for (const [name, { endsAt }] of running) if (endsAt <= at) running.delete(name);
    }
    for (const name of running.keys()) {
      if (running.size <= MAX_WINDOWS) break;
      running.delete(name);
    }
  }

  return {
    async take(allowance) {
      const at = now().getTime();
      const windows = look(allowance, at);
      if (windows.some(isFull)) return { allowed: false, windows };
      sweep(at);
      return { allowed: true, windows: windows.map((window) => count(allowance.key, window, at)) };
    },
    peek: async (allowance) => look(allowance, now().getTime()),
    close: async () => {},
  };
}
