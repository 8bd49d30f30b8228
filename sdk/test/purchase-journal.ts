import { appendFileSync, existsSync, readFileSync } from "node:fs";

export interface PlannedPurchase {
  apiKey: string;
  productId: string;
  idempotencyKey: string;
}

export interface BuyerInput {
  baseUrl: string;
  purchases: PlannedPurchase[];
  /** A line for each purchase that is done: its index and its order. */
  journal: string;
}

export const recordPurchase = (path: string, index: number, orderId: string): void =>
  appendFileSync(path, `${index} ${orderId}\n`);

export const readJournal = (path: string): [index: number, orderId: string][] =>
  (existsSync(path) ? readFileSync(path, "utf8") : "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => [Number(line.split(" ")[0]), line.split(" ")[1]!]);
