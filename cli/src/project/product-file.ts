import type { Document, LineCounter, ParsedNode, Scalar } from "yaml";
import { CommandError, UsageError } from "../errors.ts";
import { type Fields, frontMatterFields, syncedFields } from "./product-fields.ts";

/** The file of a product, by the product's type. */
export const fileNames = { PROMPT: "prompt.md", WORKFLOW: "workflow.yaml" } as const;
export type FileName = (typeof fileNames)[keyof typeof fileNames];

export const typeOf = (name: FileName): string => (name === "prompt.md" ? "PROMPT" : "WORKFLOW");

export const fileNameOf = (type: unknown): FileName =>
  type === "WORKFLOW" ? fileNames.WORKFLOW : fileNames.PROMPT;

export interface ProductFile {
  name: FileName;
  text: string;
  /** With `type` and `content`. */
  fields: Fields;
  /** The line of a field such as `content.steps[0].id`, from 1: of the innermost part that exists. */
  lineOf(field: string): number;
}

/** A mistake in the file, with its line. */
class ProductFileError extends UsageError {
  constructor(name: string, line: number, message: string, fix?: string) {
    super(`${name}:${line}: ${message}`, fix);
  }
}

/**
 * Front matter between two lines `---`, an empty line, the content, a line end: the format of imports and exports. The content of a
 * workflow is YAML here, and JSON on the service.
 */
export async function formatProductFile(name: FileName, fields: Fields): Promise<string> {
  const { content, ...front } = fields;
  return joinParts(await toYaml(front), await formatContent(name, String(content ?? "")));
}

const joinParts = (front: string, body: string) => `---\n${front}---\n\n${body}\n`;

async function formatContent(name: FileName, content: string): Promise<string> {
  if (name === "prompt.md") return content;
  try {
    return (await toYaml(JSON.parse(content))).replace(/\n$/, "");
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new CommandError(
      `The workflow is not JSON: ${error.message}`,
      "Save its definition on the service again.",
    );
  }
}

async function toYaml(value: unknown): Promise<string> {
  const { Document, visit } = await import("yaml");
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, { Scalar: (_key, node) => quoteIfOdd(node) });
  // Not folded, so that a diff shows the line that changed.
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Readers of YAML disagree about plain control characters, line separators and byte order marks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters in question
const ODD = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|[ \t]$/m;

function quoteIfOdd(node: Scalar): void {
  if (typeof node.value === "string" && ODD.test(node.value)) node.type = "QUOTE_DOUBLE";
}

export async function parseProductFile(name: FileName, bytes: Uint8Array): Promise<ProductFile> {
  const text = decode(name, bytes);
  const { front, body, bodyLine } = splitParts(name, text);
  const head = await parseYaml(name, front, 2);
  const fields = { ...readMapping(name, head, "front matter") };
  mustBeKnown(name, head, fields);
  const type = typeOf(name);
  if (fields["type"] !== undefined && String(fields["type"]).toUpperCase() !== type)
    throw new ProductFileError(
      name,
      head.lineOf("type"),
      `type must be ${type} in ${name}`,
      `A workflow is in ${fileNames.WORKFLOW}, a prompt in ${fileNames.PROMPT}.`,
    );
  const content = name === "prompt.md" ? undefined : await parseYaml(name, body, bodyLine);
  return {
    ...{ name, text },
    fields: {
      ...fields,
      type,
      contentFormat: fields["contentFormat"] ?? "text",
      content: content ? JSON.stringify(readMapping(name, content, "workflow"), null, 2) : body,
    },
    lineOf: (field) => {
      if (!/^content(\W|$)/.test(field)) return head.lineOf(field);
      return content ? content.lineOf(field.replace(/^content\W?/, "")) : bodyLine;
    },
  };
}

/** The file with other values for some fields; undefined removes a field. The rest of the front matter stays as it is. */
export async function updateProductFile(file: ProductFile, changes: Fields): Promise<string> {
  const { front, body } = splitParts(file.name, file.text);
  const { parseDocument, visit } = await import("yaml");
  const { content, ...fields } = changes;
  const document = parseDocument(front);
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined) document.delete(field);
    else document.set(field, document.createNode(value));
  }
  visit(document, { Scalar: (_key, node) => quoteIfOdd(node) });
  const head =
    Object.keys(fields).length > 0
      ? document.toString({ lineWidth: 0, flowCollectionPadding: false })
      : front;
  return joinParts(head, content === undefined ? body : await formatContent(file.name, String(content)));
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name} is not UTF-8 text`, "Save it with the encoding UTF-8.");
  }
}

const SAMPLE =
  "Begin the file as `stoa init` does: ---, the fields as name: value lines, ---, then the content.";

/** As imports read it. Windows line ends in the first line: the whole file is converted. */
function splitParts(name: string, text: string): { front: string; body: string; bodyLine: number } {
  const lines = /^---[ \t]*\r\n/.test(text) ? text.replaceAll("\r\n", "\n") : text;
  const opening = /^---[ \t]*\n/.exec(lines);
  if (!opening) throw new ProductFileError(name, 1, "the front matter is missing", SAMPLE);
  const rest = lines.slice(opening[0].length);
  const closing = /^---[ \t]*(\n|$)/m.exec(rest);
  if (!closing) throw new ProductFileError(name, 1, "the front matter has no second line ---", SAMPLE);
  const front = rest.slice(0, closing.index);
  const below = rest.slice(closing.index + closing[0].length);
  const hasEmptyLine = below.startsWith("\n");
  return {
    front,
    body: (hasEmptyLine ? below.slice(1) : below).replace(/\n$/, ""),
    bodyLine: front.split("\n").length + 2 + (hasEmptyLine ? 1 : 0),
  };
}

interface ParsedYaml {
  value: unknown;
  /** In the whole file. */
  lineOf(field: string): number;
}

/** `firstLine` is where the text begins in its file. */
async function parseYaml(name: string, text: string, firstLine: number): Promise<ParsedYaml> {
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset: number) => (lines as LineCounter).linePos(offset).line + firstLine - 1;
  const [error] = document.errors;
  if (error) throw new ProductFileError(name, lineAt(error.pos[0]), error.message, "Correct the YAML.");
  return { value: toValue(name, document, firstLine), lineOf: (field) => lineAt(offsetOf(document, field)) };
}

function toValue(name: string, document: Document.Parsed, line: number): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new ProductFileError(name, line, (error as Error).message, "Write it without aliases.");
  }
}

/** The offset of the longest part of a path such as `variables[1].name` that exists. */
function offsetOf(document: Document.Parsed, field: string): number {
  let node: ParsedNode | null = document.contents;
  let offset = node?.range[0] ?? 0;
  for (const part of field.split(/[.[\]]+/).filter((each) => each !== "")) {
    const items: unknown[] = node !== null && "items" in node ? node.items : [];
    const pair = items.find((item) => keyOf(item) === part) as
      | { key: ParsedNode; value: ParsedNode }
      | undefined;
    const item = pair ?? (/^\d+$/.test(part) ? (items[Number(part)] as ParsedNode | undefined) : undefined);
    if (!item) break;
    offset = (pair ? pair.key : (item as ParsedNode)).range?.[0] ?? offset;
    node = pair ? pair.value : (item as ParsedNode);
  }
  return offset;
}

const keyOf = (item: unknown): string | undefined => {
  const key = (item as { key?: { value?: unknown } | null }).key;
  return key ? String(key.value) : undefined;
};

function readMapping(name: string, { value, lineOf }: ParsedYaml, what: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new ProductFileError(name, lineOf(""), `the ${what} must be name: value lines`, SAMPLE);
}

function mustBeKnown(name: string, head: ParsedYaml, fields: Fields): void {
  const unknown = Object.keys(fields).find((field) => !frontMatterFields.includes(field));
  if (unknown === undefined) return;
  const near = frontMatterFields.find((field) => distance(field.toLowerCase(), unknown.toLowerCase()) <= 2);
  throw new ProductFileError(
    name,
    head.lineOf(unknown),
    `${JSON.stringify(unknown)} is no field of a product`,
    unknown === "content"
      ? "Write the content below the front matter."
      : near
        ? `Did you mean ${near}?`
        : `The fields are: ${frontMatterFields.join(", ")}.`,
  );
}

/** The Levenshtein distance: how many characters to add, remove or replace. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++)
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1),
      );
    row = next;
  }
  return row[to.length] ?? 0;
}

/** In the order of a new file, without what only repeats a default. */
export function inFileOrder(fields: Fields): Fields {
  const ordered = Object.keys(fields).toSorted((a, b) => orderOf(a) - orderOf(b));
  const isDefault = (field: string) => field === "contentFormat" && fields[field] === "text";
  return Object.fromEntries(
    ordered
      .filter((field) => fields[field] !== undefined && !isDefault(field))
      .map((field) => [field, fields[field]]),
  );
}

const order: readonly string[] = syncedFields;
const orderOf = (field: string) => (order.includes(field) ? order.indexOf(field) : order.length - 1.5);
