import type { Event } from "js-yaml";
import { type ApiError, invalidRequest } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { MAX_DEPTH } from "../../platform/http/json-body.ts";
import { MAX_ITEM_MEMBERS } from "./import-items.ts";
import { WHOLE_PRODUCT } from "./import-problems.ts";

/** The body limit of POST /products. */
const MAX_CHARACTERS = 1024 * 1024;
/** Of lines and commas: what the parser may make into values, and all text of samples. */
const MAX_MARKS = 20_000;
/** Of the parser: at most three for a member, its name, its value and the end of its object. */
const MAX_EVENTS = 3 * MAX_ITEM_MEMBERS;

/** A problem of the whole front matter, with its line there, from 1. */
export class FrontMatterError extends Error {
  readonly line: number;
  readonly problem: ApiError;
  constructor(line: number, reason: string, field = WHOLE_PRODUCT) {
    super(reason);
    this.line = line;
    this.problem = invalidRequest(field, reason);
  }
}

export async function writeFrontMatter(fields: object): Promise<string> {
  const { dump } = await import("js-yaml");
  // Not folded, so that a diff shows the line that changed; no aliases, which we would refuse.
  return dump(fields, { lineWidth: -1, noRefs: true });
}

export interface FrontMatter {
  value: Record<string, unknown>;
  /** The line of a field, from 1: of the innermost key or list item on its path. */
  lineOf(field: string): number;
}

/** YAML 1.2, core schema: no custom tags, no aliases, no duplicate keys. */
export async function readFrontMatter(text: string): Promise<FrontMatter> {
  if (text.length > MAX_CHARACTERS)
    throw new FrontMatterError(1, `has more than ${MAX_CHARACTERS} characters of front matter`);
  if (hasMoreThan(MAX_MARKS, text, /[\n,]/g))
    throw new FrontMatterError(
      1,
      `has more than ${MAX_MARKS.toLocaleString("en")} lines and commas of front matter`,
    );
  const yaml = await import("js-yaml");
  const lineAt = (offset: number) => text.slice(0, offset).split("\n").length;
  try {
    const events = yaml.parseEvents(text, { maxDepth: MAX_DEPTH });
    if (events.length > MAX_EVENTS)
      throw new FrontMatterError(
        1,
        `has more than ${MAX_ITEM_MEMBERS.toLocaleString("en")} values in its front matter`,
      );
    const documents = yaml.constructFromEvents(events, {
      source: text,
      schema: yaml.CORE_SCHEMA,
      maxAliases: 0,
    });
    const offsetIn = (path: string[]) => offsetOf(yaml, { events, text }, path);
    return { value: mustBeMapping(documents), lineOf: (field) => lineAt(offsetIn(pathOf(field))) };
  } catch (error) {
    // The parser documents no error types, so every error counts as a problem of the text.
    if (error instanceof FrontMatterError) throw error;
    const { reason, mark } = error as Partial<InstanceType<typeof yaml.YAMLException>>;
    throw new FrontMatterError((mark?.line ?? 0) + 1, `is not plain YAML: ${reason ?? "it cannot be read"}`);
  }
}

function hasMoreThan(most: number, text: string, mark: RegExp): boolean {
  let count = 0;
  for (const _ of text.matchAll(mark)) if (++count > most) return true;
  return false;
}

function mustBeMapping([value, ...others]: unknown[]): Record<string, unknown> {
  const isMapping = typeof value === "object" && value !== null && !Array.isArray(value);
  if (isMapping && others.length === 0) return value as Record<string, unknown>;
  throw new FrontMatterError(1, "must have front matter of the form `title: …`");
}

/** Splits `variables[1].name` into its steps. */
const pathOf = (field: string) => field.split(/[.[\]]+/).filter((part) => part !== "");

interface ParsedYaml {
  /** A flat list: a document, sequence or mapping is followed by its content and closed by a POP. */
  events: Event[];
  text: string;
}

/** The offset of the longest prefix of the path that exists. */
function offsetOf(yaml: typeof import("js-yaml"), { events, text }: ParsedYaml, path: string[]): number {
  const { EVENT_SCALAR, EVENT_ALIAS, EVENT_SEQUENCE, EVENT_MAPPING, EVENT_POP } = yaml;
  const eventAt = (at: number): Event => required(events[at], "the end of a node");
  const afterNode = (at: number): number => {
    let depth = 0;
    do {
      const { type } = eventAt(at);
      if (type === EVENT_POP) depth--;
      else if (type !== EVENT_SCALAR && type !== EVENT_ALIAS) depth++;
      at++;
    } while (depth > 0);
    return at;
  };
  const isKey = (event: Event, name: string) =>
    event.type === EVENT_SCALAR && yaml.getScalarValue(text, event) === name;
  const startOf = (event: Event) =>
    "valueStart" in event ? event.valueStart : "start" in event ? event.start : 0;

  let node = 1;
  let offset = 0;
  for (const part of path) {
    const isMapping = events[node]?.type === EVENT_MAPPING;
    if (!isMapping && events[node]?.type !== EVENT_SEQUENCE) break;
    let at = node + 1;
    let index = 0;
    while (
      eventAt(at).type !== EVENT_POP &&
      (isMapping ? !isKey(eventAt(at), part) : String(index) !== part)
    ) {
      at = afterNode(isMapping ? afterNode(at) : at);
      index++;
    }
    if (eventAt(at).type === EVENT_POP) break;
    offset = startOf(eventAt(at));
    node = isMapping ? afterNode(at) : at;
  }
  return Math.max(offset, 0);
}
