import type { Member } from "../../core/context.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { Product } from "./prepare-run.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** What prompt runs of this process last read of products and keys. */
    runTargets: RunTargets;
  }
}

/** The part of a product that a run needs. */
export type RunProduct = Pick<
  Product,
  | ("id" | "authorId" | "type" | "reason" | "usedAt" | "revision" | "compatibility" | "models")
  | ("version" | "major" | "content" | "contentFormat" | "variables")
>;

/** A product and the key to run it with, as one account reads them. */
export interface RunTarget {
  product: RunProduct;
  key: SealedKey;
}

interface TargetRequest {
  productId: string;
  apiKeyId: string;
}

const MAX_TARGETS = 2_000;
/** UTF-16 units of all contents. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** The last targets by name, within a limit of their number and one of their size. */
export class TargetMemory<Target> {
  /** The least recently used one is first. */
  readonly #targets = new Map<string, { target: Target; characters: number }>();
  #characters = 0;

  find(name: string): Target | undefined {
    const found = this.#targets.get(name);
    if (!found) return undefined;
    this.#targets.delete(name);
    this.#targets.set(name, found);
    return found.target;
  }

  remember(name: string, target: Target, characters: number): void {
    this.forget(name);
    this.#targets.set(name, { target, characters });
    this.#characters += characters;
    while (this.#targets.size > MAX_TARGETS || this.#characters > MAX_CHARACTERS) {
      const [oldest] = this.#targets.keys();
      this.forget(oldest!);
    }
  }

  forget(name: string): void {
    this.#characters -= this.#targets.get(name)?.characters ?? 0;
    this.#targets.delete(name);
  }
}

/**
 * Remembers the targets of the last runs, so that a repeated run reads nothing before its first statement. A remembered target may be
 * stale: the statement that inserts the run compares it with the database (`isUnchangedSql`) and writes nothing if it has changed.
 */
export class RunTargets {
  readonly #memory = new TargetMemory<RunTarget>();

  find(caller: Pick<Member, "userId">, request: TargetRequest): RunTarget | undefined {
    return this.#memory.find(nameOf(caller, request));
  }

  /** Not before the first run of a purchase, which must be recorded. */
  remember(caller: Pick<Member, "userId">, request: TargetRequest, { product, key }: RunTarget): void {
    const name = nameOf(caller, request);
    if (isRepeatable(product))
      this.#memory.remember(name, { product: toRunProduct(product), key }, product.content.length);
    else this.#memory.forget(name);
  }

  forget(caller: Pick<Member, "userId">, request: TargetRequest): void {
    this.#memory.forget(nameOf(caller, request));
  }
}

/** Whether the next run of a product needs no more than this one: the first use of a purchase must be recorded. */
export const isRepeatable = ({ reason, usedAt }: Pick<RunProduct, "reason" | "usedAt">): boolean =>
  reason !== "none" && (reason !== "purchased" || usedAt !== null);

const nameOf = ({ userId }: Pick<Member, "userId">, { productId, apiKeyId }: TargetRequest) =>
  `${userId} ${productId} ${apiKeyId}`;

/** A copy, because the whole row has more than ten times the size of most contents. */
export function toRunProduct(product: RunProduct): RunProduct {
  const { id, authorId, type, reason, usedAt, revision, compatibility, models } = product;
  const { version, major, content, contentFormat, variables } = product;
  return {
    ...{ id, authorId, type, reason, usedAt, revision, compatibility, models },
    ...{ version, major, content, contentFormat, variables },
  };
}
