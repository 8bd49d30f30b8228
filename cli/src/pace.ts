/** The part of the remaining quota that repeated requests may use: the rest is for other programs of the account. */
const SHARE = 0.5;

/** How often a command may repeat requests, by the rate limit of the service's last response. */
export class Pace {
  #remaining = Number.POSITIVE_INFINITY;
  #resetMs = 0;

  /** The field `ratelimit` has seconds, and so needs no exact clock on this machine. */
  record(headers: Headers): void {
    const [, remaining, seconds] = /;r=(\d+);t=(\d+)/.exec(headers.get("ratelimit") ?? "") ?? [];
    if (remaining === undefined) return;
    this.#remaining = Number(remaining);
    this.#resetMs = Number(seconds) * 1_000;
  }

  /** The pause between repetitions of so many requests. None is longer than the window, after which the quota is full again. */
  pauseMs(requests: number): number {
    const repetitions = (this.#remaining * SHARE) / requests;
    return Math.min(this.#resetMs, this.#resetMs / repetitions);
  }

  /** How many requests one repetition may send, so that a few more are possible. */
  get maxRequests(): number {
    return Math.max(1, Math.floor((this.#remaining * SHARE) / 2));
  }

  describe(): string {
    return `${this.#remaining} requests of your quota are left for ${Math.ceil(this.#resetMs / 60_000)} min`;
  }
}
