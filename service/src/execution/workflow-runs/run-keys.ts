import type { Context } from "../../core/context.ts";
import { findRunKey, type SealedKey } from "../provider-keys/provider-keys.ts";
import { runCaller } from "./run-caller.ts";
import type { RunInput } from "./sealed-texts.ts";

/** Reads each provider key of a run once. `invalidate` makes the next call read it again. */
export class RunKeys {
  readonly #ctx: Context;
  readonly #userId: string;
  readonly #ids: RunInput["apiKeys"];
  readonly #keys = new Map<string, Promise<SealedKey>>();

  /** `known`: keys that were read before, by provider. The reservation of a call refuses one that has changed. */
  constructor(
    ctx: Context,
    userId: string,
    { apiKeys }: RunInput,
    known: ReadonlyMap<string, SealedKey> = new Map(),
  ) {
    this.#ctx = ctx;
    this.#userId = userId;
    this.#ids = apiKeys;
    for (const [provider, key] of known) this.#keys.set(provider, Promise.resolve(key));
  }

  /** The run's key for a provider. Throws PROVIDER_KEY_NOT_FOUND. */
  find(provider: string): Promise<SealedKey> {
    const cached = this.#keys.get(provider);
    if (cached) return cached;
    const found = findRunKey(this.#ctx, runCaller(this.#userId), this.#ids[provider] ?? "");
    this.#keys.set(provider, found);
    found.catch(() => this.#keys.delete(provider));
    return found;
  }

  invalidate(provider: string): void {
    this.#keys.delete(provider);
  }
}
