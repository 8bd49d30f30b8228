import type { Quota } from "@stoa/contract";

declare module "../../core/context.ts" {
  interface Context {
    /** Counts requests for the rate limits. */
    counters: RateLimitCounters;
  }
}

/** What may be asked under one key; all of its quotas hold at once. */
export interface RateLimitKey {
  key: string;
  /** Each of a length of its own, the shortest first. */
  quotas: Quota[];
}

/** A quota's window as it stands: it begins with the first request in it, and its length is fixed. */
export interface RateLimitWindow {
  quota: Quota;
  used: number;
  /** null: no request has begun it. */
  endsAt: Date | null;
}

export interface ConsumeResult {
  allowed: boolean;
  /** In the order of the quotas. */
  windows: RateLimitWindow[];
}

/** Counts requests by key: in this process's memory, or in a store that all processes share. */
export interface RateLimitCounters {
  /** Counts a request in every window; in none when one of them is full. */
  consume(allowance: RateLimitKey): Promise<ConsumeResult>;
  peek(allowance: RateLimitKey): Promise<RateLimitWindow[]>;
  close(): Promise<void>;
}

export const isFull = ({ quota, used }: RateLimitWindow) => used >= quota.requests;

/** A flood of addresses must not eat the memory: past this the oldest windows are forgotten. */
const MAX_WINDOWS = 500_000;
const SWEEP_EVERY_MS = 60_000;

/** Counts in this process alone, by the given clock; exact, since nothing comes between looking and counting. */
export function createMemoryCounters(now: () => Date): RateLimitCounters {
  const running = new Map<string, { used: number; endsAt: number }>();
  let sweptAt = 0;

  const nameOf = (key: string, { seconds }: Quota) => `${key}:${seconds}`;

  function look({ key, quotas }: RateLimitKey, at: number): RateLimitWindow[] {
    return quotas.map((quota) => {
      const window = running.get(nameOf(key, quota));
      if (!window || window.endsAt <= at) return { quota, used: 0, endsAt: null };
      return { quota, used: window.used, endsAt: new Date(window.endsAt) };
    });
  }

  function count(key: string, { quota, used, endsAt }: RateLimitWindow, at: number): RateLimitWindow {
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
    async consume(allowance) {
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
