import type { ProductCard } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { stoa } from "../../api.ts";
import { describeError } from "../../lib/errors.ts";
import { formatCount } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";

/** How prices change: all to one amount, or each by a share of it. */
export type PriceChange = { kind: "amount"; amount: number } | { kind: "percent"; percent: number };

export type BulkQuestion =
  | { kind: "delete"; products: ProductCard[] }
  | { kind: "price"; products: ProductCard[] };

export interface BulkChange {
  /** What is done to one product. */
  run: (product: ProductCard) => Promise<unknown>;
  /** "published": after the number of products. */
  done: string;
  undo?: (product: ProductCard) => Promise<unknown>;
}

export interface Bulk {
  /** Why a product was not changed, by its id. */
  problems: ReadonlyMap<string, string>;
  /** How many are done while it runs. */
  progress: { done: number; total: number } | null;
  question: BulkQuestion | null;
  ask: (question: BulkQuestion | null) => void;
  start: (products: ProductCard[], change: BulkChange) => Promise<void>;
}

const productsOf = (count: number): string => `${formatCount(count)} ${count === 1 ? "product" : "products"}`;

/** Changes products one after another: what fails for one is told at its row and stops no other. */
export function useBulk(): Bulk {
  const client = useQueryClient();
  const isRunning = useRef(false);
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const [progress, setProgress] = useState<Bulk["progress"]>(null);
  const [question, ask] = useState<BulkQuestion | null>(null);

  async function runAll(products: ProductCard[], run: BulkChange["run"]): Promise<ProductCard[]> {
    const failed = new Map<string, string>();
    for (const [done, product] of products.entries()) {
      setProgress({ done, total: products.length });
      try {
        await run(product);
      } catch (error) {
        failed.set(product.id, describeError(error).text);
      }
    }
    setProgress(null);
    setProblems(failed);
    await client.invalidateQueries({ queryKey: ["studio"] });
    return products.filter(({ id }) => !failed.has(id));
  }

  async function start(products: ProductCard[], { run, done, undo }: BulkChange): Promise<void> {
    if (isRunning.current) return;
    isRunning.current = true;
    const changed = await runAll(products, run).finally(() => {
      isRunning.current = false;
    });
    const rest = products.length - changed.length;
    const text = `${productsOf(changed.length)} ${done}${rest > 0 ? `, ${formatCount(rest)} not` : ""}.`;
    const takeBack = () => void start(changed, { run: undo ?? run, done: "changed back" });
    showToast(text, undo && changed.length > 0 ? { undo: takeBack } : {});
  }

  return { problems, progress, question, ask, start };
}

export const PUBLISH: BulkChange = {
  run: async ({ id }) => await stoa.products.publish(id),
  undo: async ({ id }) => await stoa.products.unpublish(id),
  done: "published",
};

export const UNPUBLISH: BulkChange = {
  run: async ({ id }) => await stoa.products.unpublish(id),
  undo: async ({ id }) => await stoa.products.publish(id),
  done: "taken off sale",
};

export const DELETE: BulkChange = {
  run: async ({ id }) => await stoa.products.delete(id),
  done: "deleted",
};

/** The new price, with the decimals of its currency. */
export function newPrice({ price, currency }: ProductCard, change: PriceChange): number {
  if (change.kind === "amount") return change.amount;
  const decimals =
    new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
  return Number((price * (1 + change.percent / 100)).toFixed(decimals));
}

export const changePrices = (change: PriceChange): BulkChange => ({
  run: async (product) => await stoa.products.update(product.id, { price: newPrice(product, change) }),
  undo: async ({ id, price }) => await stoa.products.update(id, { price }),
  done: "repriced",
});
