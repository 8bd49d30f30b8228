/**
 * Well-formedness by XML 1.0 (fifth edition) and Namespaces in XML 1.0. fast-xml-parser reads faulty documents too, so it cannot
 * decide this.
 */

const START = String.raw`A-Z_a-z\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{2FF}\u{370}-\u{37D}\u{37F}-\u{1FFF}\u{200C}\u{200D}\u{2070}-\u{218F}\u{2C00}-\u{2FEF}\u{3001}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFFD}\u{10000}-\u{EFFFF}`;
const NAME = String.raw`[${START}][\-.\d\u{B7}\u{300}-\u{36F}\u{203F}\u{2040}${START}]*`;
const FORBIDDEN = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u;

const DECLARATION =
  /<\?xml\s+version\s*=\s*(?:"1\.\d+"|'1\.\d+')(?:\s+encoding\s*=\s*(?:"[A-Za-z][\w.-]*"|'[A-Za-z][\w.-]*'))?(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>/y;
const DOCTYPE = new RegExp(
  String.raw`<!DOCTYPE\s+(?:${NAME}:)?${NAME}(?:\s+(?:SYSTEM|PUBLIC\s+(?:"[\x20\r\na-zA-Z0-9'()+,./:=?;!*#@$_%\-]*"|'[\x20\r\na-zA-Z0-9()+,./:=?;!*#@$_%\-]*'))\s+(?:"[^"#]*"|'[^'#]*'))?\s*>`,
  "uy",
);
const COMMENT = /<!--(?:(?!--)[\s\S])*-->/y;
const INSTRUCTION = new RegExp(String.raw`<\?(?!xml[\s?])${NAME}(?:\s[\s\S]*?)?\?>`, "uiy");
const CDATA = /<!\[CDATA\[[\s\S]*?\]\]>/y;
const TEXT = /[^<]+/y;
const OPENING = new RegExp(
  String.raw`<((?:${NAME}:)?${NAME})((?:\s+(?:${NAME}:)?${NAME}\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>`,
  "uy",
);
const CLOSING = new RegExp(String.raw`<\/((?:${NAME}:)?${NAME})\s*>`, "uy");
const ATTRIBUTE = new RegExp(String.raw`((?:${NAME}:)?${NAME})\s*=\s*(?:"([^"]*)"|'([^']*)')`, "gu");
const REFERENCE = new RegExp(String.raw`&(?:#(\d+)|#x([\da-fA-F]+)|(${NAME}));|&`, "gu");
const ENTITIES = new Set(["amp", "lt", "gt", "quot", "apos"]);

const XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/";

type Namespaces = ReadonlyMap<string, string>;

interface OpenElement {
  name: string;
  namespaces: Namespaces;
}

class XmlError extends Error {}

/** What is wrong with this XML document, or null. Document types with an internal subset are refused, as in promptfoo. */
export function findXmlProblem(xml: string): string | null {
  try {
    new XmlReader(xml.startsWith("\uFEFF") ? xml.slice(1) : xml).read();
    return null;
  } catch (error) {
    if (error instanceof XmlError) return error.message;
    throw error;
  }
}

class XmlReader {
  readonly #xml: string;
  readonly #open: OpenElement[] = [];
  #index = 0;
  #hasRoot = false;
  /** Declared by an external document type, which nobody reads. */
  #hasUnknownEntities = false;

  constructor(xml: string) {
    this.#xml = xml;
  }

  read(): void {
    if (FORBIDDEN.test(this.#xml)) throw new XmlError("has a character that XML does not allow");
    const [declaration = ""] = this.#take(DECLARATION) ?? [];
    const isStandalone = /standalone\s*=\s*["']yes/.test(declaration);
    while (this.#index < this.#xml.length) this.#readPart(isStandalone);
    if (this.#open.length > 0) throw new XmlError(`lacks </${this.#open.at(-1)!.name}>`);
    if (!this.#hasRoot) throw new XmlError("has no element");
  }

  #readPart(isStandalone: boolean): void {
    const text = this.#take(TEXT);
    const closing = text ? null : this.#take(CLOSING);
    const opening = text || closing ? null : this.#take(OPENING);
    if (text) this.#readText(text[0]);
    else if (closing) this.#close(closing[1]!);
    else if (opening) this.#openElement(opening[1]!, opening[2]!, opening[3] === "/");
    else if (!this.#take(COMMENT) && !this.#take(INSTRUCTION) && !this.#readCdata())
      this.#readDoctype(isStandalone);
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#index;
    const match = pattern.exec(this.#xml);
    if (match) this.#index = pattern.lastIndex;
    return match;
  }

  #readCdata(): boolean {
    return this.#open.length > 0 && this.#take(CDATA) !== null;
  }

  #readDoctype(isStandalone: boolean): void {
    const doctype = this.#hasRoot ? null : this.#take(DOCTYPE);
    if (!doctype) throw new XmlError(`is not well-formed at character ${this.#index + 1}`);
    this.#hasUnknownEntities = /SYSTEM|PUBLIC/.test(doctype[0]) && !isStandalone;
  }

  #readText(text: string): void {
    if (this.#open.length === 0 && /[^ \t\r\n]/.test(text))
      throw new XmlError("has text outside its element");
    if (text.includes("]]>")) throw new XmlError("has ]]> in a text");
    this.#checkReferences(text);
  }

  #checkReferences(text: string): void {
    for (const [reference, decimal, hexadecimal, entity] of text.matchAll(REFERENCE)) {
      const code = decimal
        ? Number.parseInt(decimal, 10)
        : hexadecimal
          ? Number.parseInt(hexadecimal, 16)
          : null;
      const isCharacter = code !== null && code <= 0x10ffff && !FORBIDDEN.test(String.fromCodePoint(code));
      const isEntity = entity !== undefined && (this.#hasUnknownEntities || ENTITIES.has(entity));
      if (!isCharacter && !isEntity)
        throw new XmlError(`has the reference ${reference.slice(0, 40)}, which is not defined`);
    }
  }

  #openElement(name: string, attributeText: string, isEmpty: boolean): void {
    if (this.#open.length === 0 && this.#hasRoot) throw new XmlError("has a second root element");
    this.#hasRoot = true;
    const attributes = [...attributeText.matchAll(ATTRIBUTE)].map(
      ([, attribute, double, single]) => [attribute!, double ?? single ?? ""] as const,
    );
    const namespaces = withDeclared(this.#open.at(-1)?.namespaces ?? NAMESPACES, attributes);
    expand(name, namespaces, true);
    checkUnique(attributes.map(([attribute]) => attribute));
    checkUnique(attributes.map(([attribute]) => expand(attribute, namespaces, false)));
    for (const [, value] of attributes) this.#checkReferences(value);
    if (!isEmpty) this.#open.push({ name, namespaces });
  }

  #close(name: string): void {
    const open = this.#open.pop();
    if (open?.name !== name)
      throw new XmlError(`has </${name}> where ${open ? `</${open.name}>` : "no element"} is open`);
  }
}

const NAMESPACES: Namespaces = new Map([
  ["xml", XML_NAMESPACE],
  ["xmlns", XMLNS_NAMESPACE],
]);

function withDeclared(outer: Namespaces, attributes: (readonly [string, string])[]): Namespaces {
  const declared = attributes.filter(([name]) => name === "xmlns" || name.startsWith("xmlns:"));
  if (declared.length === 0) return outer;
  const namespaces = new Map(outer);
  for (const [name, value] of declared) {
    const prefix = name === "xmlns" ? "" : name.slice("xmlns:".length);
    const uri = value.trim();
    const isReserved =
      (prefix === "xml") !== (uri === XML_NAMESPACE) || prefix === "xmlns" || uri === XMLNS_NAMESPACE;
    if (isReserved || (prefix !== "" && uri === ""))
      throw new XmlError(`declares the namespace ${name} wrongly`);
    namespaces.set(prefix, uri);
  }
  return namespaces;
}

function expand(name: string, namespaces: Namespaces, isElement: boolean): string {
  const colon = name.indexOf(":");
  if (colon < 0) return isElement ? `{${namespaces.get("") ?? ""}}${name}` : name;
  const uri = namespaces.get(name.slice(0, colon));
  if (uri === undefined || (isElement && name.startsWith("xmlns:")))
    throw new XmlError(`has the prefix of ${name}, which no namespace declares`);
  return `{${uri}}${name.slice(colon + 1)}`;
}

function checkUnique(names: string[]): void {
  if (new Set(names).size < names.length) throw new XmlError("has an attribute twice in one element");
}
