import type { Command } from "commander";
import { Cli } from "./cli.ts";
import { UsageError } from "./errors.ts";
import type { GlobalOptions } from "./settings.ts";

export type Work<O extends object, A extends readonly unknown[]> = (
  cli: Cli,
  options: O & GlobalOptions,
  ...operands: A
) => Promise<void>;

/** What commander runs for a command: `work` with the options of the command and of all commands, and its operands. */
export const action =
  <O extends object = object, A extends readonly unknown[] = string[]>(work: Work<O, A>) =>
  async (...given: unknown[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const options = command.optsWithGlobals<O & GlobalOptions>();
    await work(new Cli(options), options, ...(given.slice(0, -2) as unknown as A));
  };

/** Example lines below the help of a command. */
export const example = (command: Command, ...lines: string[]): Command =>
  command.addHelpText("after", `\nExample:\n${lines.map((line) => `  $ ${line}`).join("\n")}`);

/** A whole number of at least `min`, for an option. */
export const wholeNumber =
  (min: number) =>
  (text: string): number => {
    const number = Number(text);
    if (!Number.isSafeInteger(number) || number < min)
      throw new UsageError(`${JSON.stringify(text)} is not a whole number from ${min} on`);
    return number;
  };

/** A number of at least 0, for an option. */
export function decimal(text: string): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number < 0)
    throw new UsageError(`${JSON.stringify(text)} is no number`, "Write it with a dot, such as 4.99.");
  return number;
}

/** Collects a repeated option. */
export const repeated = (value: string, earlier: string[] = []): string[] => [...earlier, value];

const DEFAULT_LIMIT = 30;

export interface ListOptions {
  limit?: number;
  all?: boolean;
}

/** How many items a list shows. */
export const listOptions = (command: Command): Command =>
  command
    .option("--limit <n>", `how many to show (default: ${DEFAULT_LIMIT})`, wholeNumber(1))
    .option("--all", "show all of them");

export interface ListOf<T> {
  page(): Promise<{ data: T[]; meta: { total: number } }>;
  toArray(options: { limit?: number }): Promise<T[]>;
  [Symbol.asyncIterator](): AsyncIterator<T>;
}

const MAX_PAGE = 100;

/** Items of a list within the limits of the options, and how many there are. */
export async function readList<T>(
  open: (page: { limit: number }) => ListOf<T>,
  { limit = DEFAULT_LIMIT, all }: ListOptions,
): Promise<{ items: T[]; total: number }> {
  const wanted = all ? Number.POSITIVE_INFINITY : limit;
  const list = open({ limit: Math.min(wanted, MAX_PAGE) });
  if (wanted <= MAX_PAGE) {
    const { data, meta } = await list.page();
    return { items: data, total: meta.total };
  }
  const items = await list.toArray(all ? {} : { limit });
  return { items, total: items.length };
}
