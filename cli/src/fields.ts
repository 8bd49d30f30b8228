import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { repeated } from "./command.ts";
import { UsageError } from "./errors.ts";

export interface BodyOptions {
  field?: string[];
  from?: string;
}

/** Fields that have no option of their own. */
export const bodyOptions = (command: Command): Command =>
  command
    .option(
      "-f, --field <name=value>",
      "a field of the request: numbers, true, false, null and JSON are read as such, @path is a file's text",
      repeated,
    )
    .option("--from <file>", "the request as a JSON or YAML file; - is standard input");

/** The request of a command: a file, then single fields, then the command's own options. Options that are not set are left out. */
export async function readBody<T extends object>(
  { field = [], from }: BodyOptions,
  own: Partial<T> = {},
): Promise<T> {
  const body: Record<string, unknown> = from ? await readObject(from) : {};
  for (const each of field) await setField(body, each);
  for (const [name, value] of Object.entries(own)) if (value !== undefined) body[name] = value;
  return body as T;
}

export async function readObject(path: string): Promise<Record<string, unknown>> {
  const text = await readText(path);
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`, "Write JSON or YAML.");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new UsageError(`${path} must contain an object`, "Write it as name: value lines, or as JSON.");
}

/** A file's text; - is standard input. */
export async function readText(path: string): Promise<string> {
  if (path === "-") return readInput();
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`Cannot read ${path}: ${code}`, "Name a file that exists.");
  }
}

export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** `price=5` and `author.name=Ada`. */
async function setField(body: Record<string, unknown>, text: string): Promise<void> {
  const [name, value] = splitPair(text, "--field");
  const path = name.split(".");
  const last = path.pop() ?? "";
  let parent = body;
  for (const part of path) {
    const child = Object.hasOwn(parent, part) ? parent[part] : undefined;
    const next = typeof child === "object" && child !== null ? (child as Record<string, unknown>) : {};
    parent[part] = next;
    parent = next;
  }
  parent[last] = await toValue(value);
}

/** `name=value`; the value may contain more equals signs. */
export function splitPair(text: string, option: string): [name: string, value: string] {
  const at = text.indexOf("=");
  if (at <= 0)
    throw new UsageError(`${option} ${JSON.stringify(text)} has no name`, "Write it as name=value.");
  return [text.slice(0, at), text.slice(at + 1)];
}

async function toValue(text: string): Promise<unknown> {
  if (text.startsWith("@")) return readText(text.slice(1));
  if (!/^(-?\d|true$|false$|null$|[[{"])/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
