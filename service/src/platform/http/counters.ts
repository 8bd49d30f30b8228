import type { Quota } from "@stoa/contract";

declare module "../../core/context.ts" {
  interface Context {
    /** Counts requests for the rate limits. */
    counters: RateLimitCounters;
  }
}

/** The quotas of one key; all apply at the same time. */
export interface RateLimitKey {
  key: string;
  /** The shortest first; no two have the same length. */
  quotas: Quota[];
}

/** A fixed window, which begins with the first request in it. */
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

export interface RateLimitCounters {
  /** Counts a request in every window; in none when one of them is full. */
  consume(allowance: RateLimitKey): Promise<ConsumeResult>;
  peek(allowance: RateLimitKey): Promise<RateLimitWindow[]>;
  close(): Promise<void>;
}

export const isFull = ({ quota, used }: RateLimitWindow) => used >= quota.requests;

/** Bounds the memory in a flood of addresses: past this, the oldest windows are dropped. */
const MAX_WINDOWS = 500_000;
const SWEEP_EVERY_MS = 60_000;

interface RunningWindow {
  used: number;
  endsAt: number;
}

/** Exact, because nothing runs between the read and the count. */
export class MemoryCounters implements RateLimitCounters {
  readonly #running = new Map<string, RunningWindow>();
  readonly #now: () => Date;
  #sweptAt = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  async consume(allowance: RateLimitKey): Promise<ConsumeResult> {
    const at = this.#now().getTime();
    const windows = this.#look(allowance, at);
    if (windows.some(isFull)) return { allowed: false, windows };
    this.#sweep(at);
    return { allowed: true, windows: windows.map((window) => this.#count(allowance.key, window, at)) };
  }

  async peek(allowance: RateLimitKey): Promise<RateLimitWindow[]> {
    return this.#look(allowance, this.#now().getTime());
  }

  async close(): Promise<void> {}

  #look({ key, quotas }: RateLimitKey, at: number): RateLimitWindow[] {
    return quotas.map((quota) => {
      const window = this.#running.get(nameOf(key, quota));
      if (!window || window.endsAt <= at) return { quota, used: 0, endsAt: null };
      return { quota, used: window.used, endsAt: new Date(window.endsAt) };
    });
  }

  #count(key: string, { quota, used, endsAt }: RateLimitWindow, at: number): RateLimitWindow {
    const window = { used: used + 1, endsAt: endsAt?.getTime() ?? at + quota.seconds * 1000 };
    if (!endsAt) this.#running.delete(nameOf(key, quota));
    this.#running.set(nameOf(key, quota), window);
    return { quota, used: window.used, endsAt: new Date(window.endsAt) };
  }

  #sweep(at: number): void {
    if (at - this.#sweptAt >= SWEEP_EVERY_MS) {
      this.#sweptAt = at;
      for (const [name, { endsAt }] of this.#running) if (endsAt <= at) this.#running.delete(name);
    }
    for (const name of this.#running.keys()) {
      if (this.#running.size <= MAX_WINDOWS) break;
      this.#running.delete(name);
    }
  }
}

const nameOf = (key: string, { seconds }: Quota) => `${key}:${seconds}`;
