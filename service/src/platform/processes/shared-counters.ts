import type { ConsumeResult, RateLimitCounters, RateLimitKey, RateLimitWindow } from "../http/counters.ts";
import { MemoryCounters } from "../http/counters.ts";
import { COUNT_TIMEOUT_MS } from "../http/fallback-counters.ts";
import type { Channel } from "./channel.ts";

/** A question to the counters of the supervisor. */
interface CountRequest extends RateLimitKey {
  /** false: reads only. */
  consumes: boolean;
}

interface CountResponse {
  allowed: boolean;
  /** Requests and milliseconds left of each window; 0: no request has begun it. Clocks may differ, durations do not. */
  windows: [used: number, msLeft: number][];
}

export const COUNT = "count";

/** The counters of all processes, in the supervisor. They survive a restart of a process. */
export function createCountHandler(now = () => new Date()) {
  const counters = new MemoryCounters(now);
  const answer = async ({ consumes, ...allowance }: CountRequest): Promise<CountResponse> => {
    const { allowed, windows } = consumes
      ? await counters.consume(allowance)
      : { allowed: true, windows: await counters.peek(allowance) };
    const at = now().getTime();
    return {
      allowed,
      windows: windows.map(({ used, endsAt }) => [used, endsAt === null ? 0 : endsAt.getTime() - at]),
    };
  };
  return (requests: CountRequest[]): Promise<CountResponse[]> => Promise.all(requests.map(answer));
}

interface WaitingRequest {
  request: CountRequest;
  resolve(response: CountResponse): void;
  reject(error: Error): void;
}

/** Counts in the supervisor: the requests of one turn of the event loop go in one message, which under load costs less than one each. */
export class SharedCounters implements RateLimitCounters {
  readonly #channel: Channel;
  readonly #now: () => Date;
  #waiting: WaitingRequest[] = [];

  constructor(channel: Channel, now: () => Date) {
    this.#channel = channel;
    this.#now = now;
  }

  async consume(allowance: RateLimitKey): Promise<ConsumeResult> {
    const { allowed, windows } = await this.#ask({ ...allowance, consumes: true });
    return { allowed, windows: this.#toWindows(allowance, windows) };
  }

  async peek(allowance: RateLimitKey): Promise<RateLimitWindow[]> {
    const { windows } = await this.#ask({ ...allowance, consumes: false });
    return this.#toWindows(allowance, windows);
  }

  async close(): Promise<void> {}

  #toWindows({ quotas }: RateLimitKey, windows: CountResponse["windows"]): RateLimitWindow[] {
    const at = this.#now().getTime();
    return quotas.map((quota, index) => {
      const [used, msLeft] = windows[index] ?? [0, 0];
      return { quota, used, endsAt: msLeft === 0 ? null : new Date(at + msLeft) };
    });
  }

  #ask(request: CountRequest): Promise<CountResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<CountResponse>();
    // The event loop handles all readable connections before this runs.
    if (this.#waiting.length === 0) setImmediate(() => void this.#send());
    this.#waiting.push({ request, resolve, reject });
    return promise;
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const requests = waiting.map(({ request }) => request);
      const responses = await this.#channel.call<CountResponse[]>(COUNT, requests, COUNT_TIMEOUT_MS);
      waiting.forEach(({ resolve, reject }, index) => {
        const response = responses[index];
        if (response) resolve(response);
        else reject(new Error("the supervisor did not count the request"));
      });
    } catch (error) {
      for (const { reject } of waiting) reject(error as Error);
    }
  }
}
