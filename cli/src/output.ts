import { spawn } from "node:child_process";
import { once } from "node:events";
import { styleText } from "node:util";
import { environment } from "./environment.ts";
import { UsageError } from "./errors.ts";
import type { GlobalOptions } from "./settings.ts";

/** A column of a table: the field's path, such as `author.name`, and how people read it. */
export interface Column<T = never> {
  field: string;
  title?: string;
  format?: (item: T) => unknown;
}

export type Style = Parameters<typeof styleText>[0];

/** Data goes to standard output, and messages for people to standard error. */
export class Output {
  readonly isJson: boolean;
  readonly #fields: string[] | undefined;
  readonly #usesPager: boolean;
  readonly #usesColor: boolean;
  /** While a pager has the terminal. */
  isPaging = false;

  constructor({ json, fields, color, pager }: GlobalOptions) {
    this.isJson = json === true;
    this.#fields = fields?.split(",").map((field) => field.trim());
    this.#usesPager = pager !== false && process.stdout.isTTY === true && !this.isJson;
    this.#usesColor = color !== false && environment("NO_COLOR") === undefined;
  }

  /** A line for people, which a pipe does not get. */
  report(text: string): void {
    process.stderr.write(`${withoutEscapes(text)}\n`);
  }

  /** A line of data. */
  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Text without a line end, for output that arrives in pieces. Waits while the reader is slower. */
  async write(text: string): Promise<void> {
    if (!process.stdout.write(text)) await once(process.stdout, "drain");
  }

  style(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
    return this.#usesColor && stream.isTTY ? styleText(style, text, { validateStream: false }) : text;
  }

  /** One object: its columns for people, all of it as JSON. */
  object<T extends object>(object: T, columns: readonly Column<T>[]): void {
    if (this.isJson) {
      this.json(this.#pick(object));
      return;
    }
    const shown = this.#columns(columns);
    const width = Math.max(0, ...shown.map(({ field, title }) => (title ?? field).length));
    // Further lines are indented: a foreign text must not look like another field.
    const indent = `\n${" ".repeat(width + 2)}`;
    for (const column of shown) {
      const text = toText(readColumn(object, column)).replaceAll("\n", indent);
      this.line(`${this.style("bold", (column.title ?? column.field).padEnd(width))}  ${text}`);
    }
  }

  /** Objects: a table for people, tabs in a pipe, an array as JSON. */
  async list<T extends object>(
    items: readonly T[],
    columns: readonly Column<T>[],
    ofTotal?: number,
  ): Promise<void> {
    if (this.isJson) return this.json(items.map((item) => this.#pick(item)));
    const shown = this.#columns(columns);
    const rows = items.map((item) =>
      shown.map((column) => toText(readColumn(item, column)).replace(/\s+/g, " ")),
    );
    if (!process.stdout.isTTY) {
      for (const row of rows) this.line(row.join("\t"));
      return;
    }
    if (rows.length === 0) return this.report("Nothing found.");
    const { toTable } = await import("./table.ts");
    const titles = shown.map(({ field, title }) => this.style("bold", title ?? field));
    await this.page(toTable(titles, rows, process.stdout.columns));
    if (ofTotal !== undefined && ofTotal > items.length)
      this.report(`${items.length} of ${ofTotal}. --limit shows more, --all shows all.`);
  }

  /** One item of a list that goes on: a line of JSON, or its columns. */
  item<T extends object>(item: T, columns: readonly Column<T>[]): void {
    const texts = () => this.#columns(columns).map((column) => toText(readColumn(item, column)));
    this.line(
      this.isJson ? JSON.stringify(this.#pick(item)) : texts().join(process.stdout.isTTY ? "  " : "\t"),
    );
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value, null, 2));
  }

  /** Text that may be longer than the screen. */
  async page(text: string): Promise<void> {
    const isLong = text.split("\n").length >= (process.stdout.rows ?? Number.POSITIVE_INFINITY);
    const pager = environment("STOA_PAGER") ?? environment("PAGER") ?? "less";
    if (!this.#usesPager || !isLong || pager === "cat") return this.line(text);
    const [command = "less", ...args] = pager.split(" ");
    const less = spawn(command, args, {
      stdio: ["pipe", "inherit", "inherit"],
      // Quits when all fits, keeps colours and the screen.
      env: { LESS: "FRX", ...environmentOfChildren() },
    });
    // A reader that leaves before the end closes the pipe.
    less.stdin.on("error", () => {});
    less.stdin.end(`${text}\n`);
    // Ctrl-C is for the pager, which stays.
    this.isPaging = true;
    await once(less, "close").catch(() => this.line(text));
    this.isPaging = false;
  }

  #columns<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
    return (
      this.#fields?.map((field) => columns.find((column) => column.field === field) ?? { field }) ?? columns
    );
  }

  /** The chosen fields of an object, under their paths. An unknown one is an error: a script would read nothing. */
  #pick(object: object): unknown {
    if (!this.#fields) return object;
    return Object.fromEntries(
      this.#fields.map((field) => {
        const value = readPath(object, field);
        if (value === undefined)
          throw new UsageError(
            `There is no field ${field}`,
            `The fields are: ${Object.keys(object).join(", ")}.`,
          );
        return [field, value];
      }),
    );
  }
}

// biome-ignore lint/style/noProcessEnv: children get the same environment
const environmentOfChildren = () => process.env;

function readColumn<T extends object>(item: T, { field, format }: Column<T>): unknown {
  if (format) return format(item);
  const value = readPath(item, field);
  if (value === undefined)
    throw new UsageError(`There is no field ${field}`, `The fields are: ${Object.keys(item).join(", ")}.`);
  return value;
}

const readPath = (object: object, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (value, name) =>
        value !== null && typeof value === "object" && Object.hasOwn(value, name)
          ? (value as Record<string, unknown>)[name]
          : value === null
            ? null
            : undefined,
      object,
    );

/** Control characters of foreign texts would move the cursor or change the terminal's title. */
function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return withoutControls(text);
}

/** As in a text with colors of our own: only sequences that set colors stay. */
const withoutEscapes = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape that does not begin a color
    .split(/(\x1b\[[\d;]*m)/)
    .map((part, at) => (at % 2 === 1 ? part : withoutControls(part)))
    .join("");

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
export const withoutControls = (text: string): string => text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
