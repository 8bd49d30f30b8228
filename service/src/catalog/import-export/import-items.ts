import { type ApiError, invalidRequest } from "../../core/errors.ts";
import type { ImportProblems, Location } from "./import-problems.ts";

/** A product as it stands in a file, unchecked. */
export interface Item extends Location {
  value: unknown;
  /** The line of a field, by its path. */
  lineOf(field: string): number;
}

/** What cannot be read as one. */
export interface UnreadableItem extends Location {
  error: ApiError;
}

export type ReadItem = Item | UnreadableItem;

/** More than the content of a product and everything that is said of it. */
export const MAX_ITEM_BYTES = 4 * 1024 * 1024;

/** Of objects and arrays; in Markdown, lines and commas. Checking so many keeps the process busy for about 50 ms. */
export const MAX_ITEM_MEMBERS = 5_000;

export const locationOf = ({ line, file }: Location): Location => ({
  line,
  ...(file !== undefined && { file }),
});

/** Where a field of it stands. */
export const fieldLocation = (item: Item) => (field: string) => ({
  ...locationOf(item),
  line: item.lineOf(field),
});

/** A large file keeps this process busy for a while: others are answered in between. */
export const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Everything that can be read; what cannot is a problem of its line. */
export async function collectItems(
  reads: Iterable<ReadItem> | AsyncIterable<ReadItem>,
  problems: ImportProblems,
  maxProducts: number,
): Promise<Item[]> {
  const items: Item[] = [];
  let count = 0;
  for await (const read of reads) {
    if (++count > maxProducts) {
      throw invalidRequest(
        "body",
        `holds more than ${maxProducts.toLocaleString("en")} products: send it in parts`,
      );
    }
    if ("error" in read) problems.add(read.error, () => locationOf(read));
    else items.push(read);
    await yieldToEventLoop();
  }
  if (count === 0) throw invalidRequest("body", "holds no product");
  return items;
}
