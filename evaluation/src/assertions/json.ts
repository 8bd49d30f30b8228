import { isScalar, type Pair, parseDocument, visit } from "yaml";
import { isTooLarge } from "../yaml-size.ts";
import { type Finding, type Subject, UndecidableError } from "./finding.ts";

export function isJson({ text, value: schema, validateSchema }: Subject): Finding {
  const parsed = tryParseJson(text);
  if (parsed === undefined) return { isMet: false, fact: "The output is not valid JSON." };
  if (!schema) return { isMet: true, fact: "The output is valid JSON." };
  const [problem] = validateSchema(checkedSchema(schema), parsed.value);
  if (problem === undefined) return { isMet: true, fact: "The output is JSON that conforms to the schema." };
  return { isMet: false, fact: `The output is JSON that does not conform to the schema: ${problem}` };
}

export function containsJson({ text, value: schema, validateSchema }: Subject): Finding {
  let problem: string | undefined;
  let count = 0;
  for (const found of findObjects(text)) {
    count++;
    if (!schema) return { isMet: true, fact: "The output contains a JSON object." };
    [problem] = validateSchema(checkedSchema(schema), found);
    if (problem === undefined)
      return { isMet: true, fact: "The output contains JSON that conforms to the schema." };
  }
  if (count === 0) return { isMet: false, fact: "The output contains no JSON object." };
  return { isMet: false, fact: `The output contains no JSON that conforms to the schema: ${problem}` };
}

function checkedSchema(schema: unknown): unknown {
  if (typeof schema === "object") return schema;
  throw new UndecidableError("The value must be a JSON Schema.");
}

function tryParseJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** promptfoo's limit of one object in a text. */
const MAX_OBJECT = 100_000;
/** Characters that are parsed per output; otherwise a text of opening braces takes minutes. */
const MAX_PARSED = 1_000_000;

/**
 * The objects in a text, as promptfoo finds them: from each `{` to its `}`, or to the end with the missing braces. An object
 * with small faults counts (no quotation marks, comments, a comma at its end), since YAML can read it.
 */
function* findObjects(text: string): Generator<unknown> {
  const ends = findObjectEnds(text);
  let work = 0;
  for (let start = text.indexOf("{"); start >= 0 && work < MAX_PARSED; ) {
    const limit = Math.min(start + MAX_OBJECT, text.length);
    const end = ends.get(start);
    const isClosed = end !== undefined && end <= limit;
    const json = isClosed ? text.slice(start, end) : closeBraces(text.slice(start, limit));
    work += json.length;
    const found = parseObject(json);
    if (found !== null) yield found;
    start = text.indexOf("{", found === null ? start + 1 : isClosed ? end : limit);
  }
}

/** By the position of a `{`: the position after its `}`. Braces inside strings count, as in promptfoo. */
function findObjectEnds(text: string): Map<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (let index = 0; index < text.length; index++) {
    if (text[index] === "{") open.push(index);
    const start = text[index] === "}" ? open.pop() : undefined;
    if (start !== undefined) ends.set(start, index + 1);
  }
  return ends;
}

function closeBraces(text: string): string {
  const open = text.split("{").length - text.split("}").length;
  return text + "}".repeat(Math.max(0, open));
}

function parseObject(json: string): object | null {
  const strict = tryParseJson(json);
  const value = strict === undefined ? parseYaml(json) : strict.value;
  return typeof value === "object" ? value : null;
}

/** A text in quotation marks, which the end of the line ends too, or what may be a comment. */
const TEXT_OR_COMMENT = /"(?:\\.|[^"\\\n])*(?:"|\\?$)|\/\/.*/gm;
const MAX_ADDRESS = 2_000;

/** Comments as YAML writes them. The slashes of an address such as https://example.com start none. */
const withYamlComments = (text: string): string =>
  text.replace(TEXT_OR_COMMENT, (part, index: number) => {
    const before = text.slice(Math.max(0, index - MAX_ADDRESS), index);
    const isAddress = /:$|:\/\/\S*$/.test(before.slice(before.search(/\S*$/)));
    return part.startsWith('"') || isAddress ? part : `#${part.slice(2)}`;
  });

function parseYaml(text: string): unknown {
  try {
    const commented = withYamlComments(text);
    if (isTooLarge(commented)) return undefined;
    const document = parseDocument(commented, { uniqueKeys: false, logLevel: "silent" });
    if (document.errors.length > 0 || hasCollectionAsKey(document)) return undefined;
    return document.toJS({ maxAliasCount: 10 });
  } catch {
    return undefined;
  }
}

/** As in `{{}}`, of which only the inner part is an object. */
function hasCollectionAsKey(document: Parameters<typeof visit>[0]): boolean {
  let isFound = false;
  visit(document, {
    Pair(_, { key }: Pair) {
      isFound ||= key !== null && !isScalar(key);
      return isFound ? visit.BREAK : undefined;
    },
  });
  return isFound;
}

/** Equality of JSON values as Node's `isDeepStrictEqual` decides it: 0 and -0 differ. */
export function isDeepEqual(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return Object.is(one, other);
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isDeepEqual(fieldOf(one, key), fieldOf(other, key)))
  );
}

const fieldOf = (object: object, key: string): unknown => (object as Record<string, unknown>)[key];
