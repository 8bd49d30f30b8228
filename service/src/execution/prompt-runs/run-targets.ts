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

/**
 * Remembers the targets of the last runs, so that a repeated run reads nothing before its first statement. A remembered target may be
 * stale: the statement that inserts the run compares it with the database (`isUnchangedSql`) and writes nothing if it has changed.
 */
export class RunTargets {
  /** The least recently used one is first. */
  readonly #targets = new Map<string, RunTarget>();
  #characters = 0;

  find(caller: Pick<Member, "userId">, request: TargetRequest): RunTarget | undefined {
    const name = nameOf(caller, request);
    const target = this.#targets.get(name);
    if (target) {
      this.#targets.delete(name);
      this.#targets.set(name, target);
    }
    return target;
  }

  /** Not before the first run of a purchase, which must be recorded. */
  remember(caller: Pick<Member, "userId">, request: TargetRequest, target: RunTarget): void {
    const { product, key } = target;
    this.forget(caller, request);
    if (product.reason === "none" || (product.reason === "purchased" && !product.usedAt)) return;
    this.#targets.set(nameOf(caller, request), { product: toRunProduct(product), key });
    this.#characters += product.content.length;
    while (this.#targets.size > MAX_TARGETS || this.#characters > MAX_CHARACTERS) {
      const [oldest] = this.#targets.keys();
      this.#remove(oldest!);
    }
  }

  forget(caller: Pick<Member, "userId">, request: TargetRequest): void {
    this.#remove(nameOf(caller, request));
  }

  #remove(name: string): void {
    this.#characters -= this.#targets.get(name)?.product.content.length ?? 0;
    this.#targets.delete(name);
  }
}

const nameOf = ({ userId }: Pick<Member, "userId">, { productId, apiKeyId }: TargetRequest) =>
  `${userId} ${productId} ${apiKeyId}`;

/** A copy, because the whole row has more than ten times the size of most contents. */
function toRunProduct(product: RunProduct): RunProduct {
  const { id, authorId, type, reason, usedAt, revision, compatibility, models } = product;
  const { version, major, content, contentFormat, variables } = product;
  return {
    ...{ id, authorId, type, reason, usedAt, revision, compatibility, models },
    ...{ version, major, content, contentFormat, variables },
  };
}
