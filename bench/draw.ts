import type { Random } from "@stoa/service/backoffice/demo/seeded-random.ts";

/** Draws items by weight with a binary search, since a shop of a million products draws millions of times. */
export class Wheel<T> {
  readonly #items: readonly T[];
  readonly #sums: Float64Array;

  constructor(items: readonly T[], weightOf: (item: T, at: number) => number) {
    let sum = 0;
    this.#items = items;
    this.#sums = Float64Array.from(items, (item, at) => {
      sum += weightOf(item, at);
      return sum;
    });
  }

  draw(random: Random): T {
    const wanted = random.next() * this.#sums.at(-1)!;
    let [low, high] = [0, this.#sums.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#sums[middle]! > wanted) high = middle;
      else low = middle + 1;
    }
    return this.#items[low]!;
  }
}

/** The second item is 2^s times less frequent than the first, the third 3^s times. */
export const zipf = <T>(items: readonly T[], s: number) => new Wheel(items, (_item, at) => (at + 1) ** -s);

export const weighted = <T>(weights: [T, number][]) => {
  const wheel = new Wheel(weights, ([, weight]) => weight);
  return (random: Random): T => wheel.draw(random)[0];
};

/** The normal distribution: https://en.wikipedia.org/wiki/Box-Muller_transform */
export const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());

export const chance = (random: Random, part: number): boolean => random.next() < part;
