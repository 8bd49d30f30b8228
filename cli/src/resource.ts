import type { Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "./cli.ts";
import { action, example, type ListOf, type ListOptions, listOptions, readList } from "./command.ts";
import type { Column } from "./output.ts";

interface Described<O extends object> {
  /** With its operands: `get <order>`. */
  name: string;
  description: string;
  options?: (command: Command) => Command;
  examples: string[];
  /** What `options` defines; only its type is of use. */
  readonly as?: O;
}

const define = (parent: Command, { name, description, options, examples }: Described<object>): Command => {
  const command = parent.command(name).description(description);
  options?.(command);
  return example(command, ...examples);
};

/** A command that shows a list. */
export function listCommand<T extends object, O extends object = object>(
  parent: Command,
  described: Described<O> & {
    columns: readonly Column<T>[];
    open: (stoa: Stoa, page: { limit: number }, options: O, operands: string[]) => ListOf<T>;
  },
): void {
  listOptions(define(parent, described)).action(
    action<O & ListOptions>(async (cli, options, ...operands) => {
      const stoa = await cli.stoa();
      const { items, total } = await readList(
        (page) => described.open(stoa, page, options, operands),
        options,
      );
      await cli.output.list(items, described.columns, total);
    }),
  );
}

/** A command that sends one request and shows its result. */
export function objectCommand<T extends object, O extends object = object>(
  parent: Command,
  described: Described<O> & {
    columns: readonly Column<T>[];
    call: (stoa: Stoa, options: O, operands: string[], cli: Cli) => Promise<T>;
    /** Printed after the result. */
    message?: (result: T) => string;
  },
): void {
  define(parent, described).action(
    action<O>(async (cli, options, ...operands) => {
      const result = await described.call(await cli.stoa(), options, operands, cli);
      cli.output.object(result, described.columns);
      if (described.message) cli.output.report(described.message(result));
    }),
  );
}
