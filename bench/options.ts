import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "./processes.ts";

/** A smaller number shows how a change behaves, and its figures do not go into the README. */
export const LISTINGS = 1_000_000;

export interface Options {
  scenarios: string[];
  /** The prompts from which shops are generated. */
  prompts: string;
  /** The product counts of the catalogue's shops, ascending. */
  sizes: number[];
  /** The number of orders of the analytics market. */
  orders: number;
  /** The number of products among which duplicates are found. */
  listings: number;
  /** Selects the catalogue's queries by name. */
  questions: RegExp;
  /** The folder of reusable shops; undefined: shops are temporary. */
  shops: string | undefined;
  /** The file for a CPU profile of the service; undefined: none. */
  profile: string | undefined;
}

export function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      prompts: { type: "string", default: join(ROOT, "service/src/backoffice/demo/prompts.json") },
      sizes: { type: "string", default: "10000,100000" },
      orders: { type: "string", default: "1000000" },
      listings: { type: "string", default: String(LISTINGS) },
      questions: { type: "string", default: "" },
      shops: { type: "string" },
      profile: { type: "string" },
    },
  });
  return {
    scenarios: positionals,
    prompts: values.prompts,
    sizes: sizesOf(values.sizes),
    orders: countOf("orders", values.orders, 10_000),
    listings: countOf("listings", values.listings, 1_000),
    questions: new RegExp(values.questions),
    shops: values.shops,
    profile: values.profile,
  };
}

function sizesOf(list: string): number[] {
  const sizes = list.split(",").map(Number);
  if (sizes.every((size) => Number.isInteger(size) && size >= 1_000)) return sizes.toSorted((a, b) => a - b);
  throw new Error(`--sizes ${list}: numbers of products, at least 1000 each, separated by commas`);
}

function countOf(name: string, text: string, least: number): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= least) return count;
  throw new Error(`--${name} ${text}: a number of ${name}, at least ${least}`);
}
