import { lastOf, required } from "../../core/required.ts";
/** A seeded generator (mulberry32, public domain, Tommy Ettinger), so that the demo is the same everywhere. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  integer(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  /** The probability is proportional to the weight. */
  pickWeighted<T extends { weight: number }>(items: readonly T[]): T;
}

export function seededRandom(seed: number): Random {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    pick: (items) => required(items[integer(0, items.length - 1)], "an item to pick"),
    pickWeighted(items) {
      let rest = next() * items.reduce((sum, item) => sum + item.weight, 0);
      for (const item of items) {
        rest -= item.weight;
        if (rest < 0) return item;
      }
      return lastOf(items);
    },
  };
}
