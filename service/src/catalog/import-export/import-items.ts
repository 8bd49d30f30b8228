import { type ApiError, invalidRequest } from "../../core/errors.ts";
import type { ImportProblems, Location } from "./import-problems.ts";

/** An unvalidated product of the file. */
export interface Item extends Location {
  value: unknown;
  lineOf(field: string): number;
}

export interface UnreadableItem extends Location {
  error: ApiError;
}

export type ReadItem = Item | UnreadableItem;

/** More than a product's content and all other fields. */
export const MAX_ITEM_BYTES = 4 * 1024 * 1024;

/** Of objects and arrays. Checking this many blocks the process for about 50 ms. */
export const MAX_ITEM_MEMBERS = 5_000;

export const locationOf = ({ line, file }: Location): Location => ({
  line,
  ...(file !== undefined && { file }),
});

export const fieldLocation = (item: Item) => (field: string) => ({
  ...locationOf(item),
  line: item.lineOf(field),
});

/** Lets other requests run, since a large file occupies the process for a while. */
export const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Returns the readable items and reports the others as problems of their lines. */
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
