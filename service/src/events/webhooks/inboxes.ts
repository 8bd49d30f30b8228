import { required } from "../../core/required.ts";
import type { VerificationResult } from "./verify-signature.ts";

export interface InboxMessage {
  id: string;
  headers: Record<string, string>;
  body: string;
  receivedAt: Date;
  /** `unknown`: no endpoint leads here, or one of its secrets cannot be opened. */
  signature: VerificationResult | "unknown";
}

const MAX_MESSAGES_PER_INBOX = 50;
const MAX_INBOXES = 300;
/** Of all inboxes together. */
const MAX_CHARACTERS = 32 * 1024 * 1024;

const countCharacters = ({ headers, body }: InboxMessage): number =>
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, body.length);

/** Inboxes in the memory of this process. The limits evict the least recently used. */
export class Inboxes {
  /** By name; the inbox that received last is at the end. Messages newest first. */
  readonly #messages = new Map<string, InboxMessage[]>();
  #characters = 0;

  put(name: string, message: InboxMessage): void {
    const all = [message, ...this.list(name)];
    this.#messages.delete(name);
    this.#messages.set(name, all);
    this.#characters += countCharacters(message);
    while (all.length > MAX_MESSAGES_PER_INBOX) this.#dropOldestOf(name);
    if (this.#messages.size > MAX_INBOXES) this.#drop(this.#leastRecentlyUsed());
    while (this.#characters > MAX_CHARACTERS) this.#dropOldestOf(this.#leastRecentlyUsed());
  }

  list(name: string): readonly InboxMessage[] {
    return this.#messages.get(name) ?? [];
  }

  find(name: string, id: string): InboxMessage | undefined {
    return this.list(name).find((message) => message.id === id);
  }

  /** Most recently used first. */
  all(): { name: string; count: number }[] {
    return [...this.#messages].map(([name, { length }]) => ({ name, count: length })).reverse();
  }

  #leastRecentlyUsed(): string {
    return required(this.#messages.keys().next().value, "an inbox");
  }

  #dropOldestOf(name: string): void {
    const messages = required(this.#messages.get(name), "the inbox");
    this.#characters -= countCharacters(required(messages.pop(), "a message"));
    if (messages.length === 0) this.#messages.delete(name);
  }

  #drop(name: string): void {
    while (this.#messages.has(name)) this.#dropOldestOf(name);
  }
}
