import type { Verdict } from "./verdict.ts";

/** What somebody posted to an inbox. */
export interface Arrival {
  id: string;
  headers: Record<string, string>;
  body: string;
  receivedAt: Date;
  /** What its signature was worth when it came; unknown: no endpoint of ours led here, or a secret of it cannot be opened, so that nobody can say. */
  signature: Verdict | "unknown";
}

const KEPT_OF_AN_INBOX = 50;
const MAX_INBOXES = 300;
/** Of all together. */
const MAX_CHARACTERS = 32 * 1024 * 1024;

const sizeOf = ({ headers, body }: Arrival): number =>
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, body.length);

/** Inboxes for webhooks in the memory of this process, each made by the first that comes: bounded, so that the oldest go. */
export class Inboxes {
  /** By name, the one that got something last at the end; each newest first. */
  readonly #arrivals = new Map<string, Arrival[]>();
  #characters = 0;

  put(name: string, arrival: Arrival): void {
    const kept = [arrival, ...this.list(name)];
    this.#arrivals.delete(name);
    this.#arrivals.set(name, kept);
    this.#characters += sizeOf(arrival);
    while (kept.length > KEPT_OF_AN_INBOX) this.#dropOldestOf(name);
    if (this.#arrivals.size > MAX_INBOXES) this.#drop(this.#idlest());
    while (this.#characters > MAX_CHARACTERS) this.#dropOldestOf(this.#idlest());
  }

  list(name: string): readonly Arrival[] {
    return this.#arrivals.get(name) ?? [];
  }

  find(name: string, id: string): Arrival | undefined {
    return this.list(name).find((arrival) => arrival.id === id);
  }

  /** Which inboxes have anything in them, with how much; the one that got something last comes first. */
  all(): { name: string; count: number }[] {
    return [...this.#arrivals].map(([name, { length }]) => ({ name, count: length })).reverse();
  }

  #idlest(): string {
    return this.#arrivals.keys().next().value!;
  }

  #dropOldestOf(name: string): void {
    const arrivals = this.#arrivals.get(name)!;
    this.#characters -= sizeOf(arrivals.pop()!);
    if (arrivals.length === 0) this.#arrivals.delete(name);
  }

  #drop(name: string): void {
    while (this.#arrivals.has(name)) this.#dropOldestOf(name);
  }
}
