import { isUtf8 } from "node:buffer";
import { INVISIBLE_IN_TEXT } from "@stoa/contract/invisible-characters";
import { isPlainText } from "./plain-text.ts";

/** A text as a model may read it, with the places in the seller's text. */
export interface View {
  text: string;
  /** The line of an index, from 1. */
  lineAt: (index: number) => number;
  /** null: the text itself, without invisible characters. */
  encoding: string | null;
}

/** An encoded part that is no text: a program, an archive, or an image. */
export interface OpaquePart {
  line: number;
  encoding: string;
  length: number;
  isProgram: boolean;
}

const MAX_DEPTH = 3;
/** Of all decoded parts of one text together: a code that grows when it is decoded takes no more time. */
const MAX_DECODED_CHARACTERS = 400_000;
const MAX_PARTS = 400;
const MIN_OPAQUE_CHARACTERS = 400;

/** What people see and what models read: no invisible characters, and the plain form of styled letters. Lines stay. */
export const toReadText = (text: string): string =>
  isPlainText(text) ? text : text.replace(INVISIBLE_IN_TEXT, "").normalize("NFKC");

interface Budget {
  characters: number;
  parts: number;
}

export function decodeAll(text: string, onOpaque: (part: OpaquePart) => void): View[] {
  const lineAt = lineCounter(text);
  const budget = { characters: MAX_DECODED_CHARACTERS, parts: MAX_PARTS };
  return decodeView({ text, lineAt, encoding: null }, { budget, onOpaque, depth: 0 });
}

interface DecodeState {
  budget: Budget;
  onOpaque: (part: OpaquePart) => void;
  depth: number;
}

function decodeView(view: View, { depth, ...state }: DecodeState): View[] {
  if (depth === MAX_DEPTH) return [];
  const decoded: View[] = [];
  for (const part of listParts(view, state.onOpaque)) {
    if (state.budget.parts <= 0 || part.text.length > state.budget.characters) break;
    state.budget.parts--;
    state.budget.characters -= part.text.length;
    decoded.push(part, ...decodeView(part, { ...state, depth: depth + 1 }));
  }
  return decoded;
}

/** Whole texts are long, so they are made one by one, while the budget allows them. */
function* listParts(view: View, onOpaque: DecodeState["onOpaque"]): Generator<View> {
  const coded = codedParts(view, onOpaque);
  yield* wholeTexts(view);
  yield* coded;
}

export function lineCounter(text: string): (index: number) => number {
  const ends: number[] = [];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) ends.push(at);
  return (index) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}

/** Codes that stand for single characters are decoded in their place. A decoded line break must not move later lines. */
function* wholeTexts({ text, lineAt, encoding }: View): Generator<View> {
  const viewsOf = (name: string, decoded: string, line = lineAt): View[] =>
    decoded === text ? [] : [{ text: decoded, lineAt: line, encoding: name }];
  if (/&(?:#\w{1,7}|[a-z]{2,8});/i.test(text))
    yield* viewsOf("HTML entities", text.replace(ENTITY, decodeEntity));
  if (/(?:%[0-9a-f]{2}){3}/i.test(text))
    yield* viewsOf("percent encoding", text.replace(/(?:%[0-9a-f]{2}){1,400}/gi, decodePercent));
  if (/(?:\\x[0-9a-f]{2}|\\u\{?[0-9a-f]{4}|\\[0-3]?[0-7]{2}){3}/i.test(text))
    yield* viewsOf("escapes", text.replace(ESCAPE, decodeEscape));
  if (encoding !== null) return;
  const lower = text.toLowerCase();
  if (ROT13_HINTS.some((hint) => lower.includes(hint))) yield* viewsOf("ROT13", rot13(text));
  if (REVERSED_HINTS.some((hint) => lower.includes(hint))) {
    const length = text.length;
    yield* viewsOf("reversed text", reverse(text), (index) => lineAt(Math.max(0, length - 1 - index)));
  }
}

const ENTITY = /&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi;
const NAMED: Record<string, string> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
  nbsp: " ",
  colon: ":",
  sol: "/",
  lpar: "(",
  rpar: ")",
};
const ESCAPE = /\\x([0-9a-f]{2})|\\u\{?([0-9a-f]{4,6})\}?|\\([0-3][0-7]{2})/gi;

const toCharacter = (code: number): string =>
  code === 10 || code === 13 || !(code <= 0x10ffff) ? " " : String.fromCodePoint(code);

function decodeEntity(entity: string, name: string): string {
  if (name.startsWith("#x") || name.startsWith("#X")) return toCharacter(Number.parseInt(name.slice(2), 16));
  if (name.startsWith("#")) return toCharacter(Number(name.slice(1)));
  return NAMED[name.toLowerCase()] ?? entity;
}

function decodePercent(code: string): string {
  try {
    return decodeURIComponent(code).replace(/[\r\n]/g, " ");
  } catch {
    return code;
  }
}

const decodeEscape = (_: string, hex?: string, unicode?: string, octal?: string): string =>
  octal ? toCharacter(Number.parseInt(octal, 8)) : toCharacter(Number.parseInt(hex ?? unicode ?? "20", 16));

const rot13 = (text: string): string =>
  text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });
const reverse = (text: string): string => [...text].reverse().join("");

/** Words of attacks; a text without them needs no second look. */
const ATTACK_WORDS = [
  "ignore",
  "instructions",
  "previous",
  "password",
  "system prompt",
  "do not tell",
  "curl http",
  "wget http",
];
const ROT13_HINTS = ATTACK_WORDS.map(rot13);
const REVERSED_HINTS = ATTACK_WORDS.map(reverse);

interface Code {
  name: string;
  expression: RegExp;
  /** Each match begins in a run of at least `leastRun` of these characters. */
  isMember: readonly boolean[];
  leastRun: number;
  decode: (code: string) => Buffer | null;
}

/** By code; the last one stands for all characters beside ASCII. */
const membersOf = (expression: RegExp): boolean[] =>
  Array.from({ length: NOT_ASCII + 1 }, (_, code) => expression.test(String.fromCharCode(code)));
const NOT_ASCII = 128;

const CODES: readonly Code[] = [
  {
    name: "base64",
    expression:
      /(?:[A-Za-z0-9+/_-]{40,100}\n){1,2000}[A-Za-z0-9+/_-]{2,100}={0,2}|[A-Za-z0-9+/_-]{16,}={0,2}/g,
    isMember: membersOf(/[A-Za-z0-9+/_-]/),
    leastRun: 16,
    decode: (code) => Buffer.from(code, "base64"),
  },
  {
    name: "hex",
    expression: /(?:[0-9a-f]{2}[ :,-]?){10,}/gi,
    isMember: membersOf(/[0-9a-f :,-]/i),
    leastRun: 20,
    decode: (code) => Buffer.from(code.replace(/[^0-9a-f]/gi, ""), "hex"),
  },
  {
    name: "base32",
    expression: /[A-Z2-7]{24,}={0,6}/g,
    isMember: membersOf(/[A-Z2-7]/),
    leastRun: 24,
    decode: fromBase32,
  },
  {
    name: "binary",
    expression: /(?:[01]{8}[ ,]?){6,}/g,
    isMember: membersOf(/[01 ,]/),
    leastRun: 48,
    decode: (code) => bytesOf(code.match(/[01]{8}/g), 2),
  },
  {
    name: "character codes",
    expression: /(?:\d{2,3}\s?[, ]\s?){7,}\d{2,3}/g,
    isMember: membersOf(/[\d\s,\x80]/),
    leastRun: 23,
    decode: (code) => bytesOf(code.match(/\d+/g), 10),
  },
];

function bytesOf(numbers: readonly string[] | null, radix: number): Buffer | null {
  const bytes = (numbers ?? []).map((number) => Number.parseInt(number, radix));
  return bytes.every((byte) => byte < 256) ? Buffer.from(bytes) : null;
}

function fromBase32(code: string): Buffer {
  const bytes: number[] = [];
  let [value, bits] = [0, 0];
  for (const letter of code.replace(/=+$/, "")) {
    value = ((value << 5) | "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter)) & 0xffff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return Buffer.from(bytes);
}

/** Of programs and archives, at the beginning of a file, in hex: Windows, Linux, macOS, ZIP, RAR and 7z. */
const PROGRAM = /^(?:4d5a|7f454c46|cffaedfe|504b0304|52617221|377abcaf)/;

function codedParts({ text, lineAt }: View, onOpaque: DecodeState["onOpaque"]): View[] {
  const parts: View[] = [];
  for (const kind of CODES) {
    const { name, decode } = kind;
    let count = 0;
    for (const { 0: code, index } of matchesOf(text, kind)) {
      if (++count > MAX_PARTS) break;
      const bytes = decode(code);
      const line = lineAt(index);
      const decoded = bytes && readText(bytes);
      if (decoded) parts.push({ text: decoded, lineAt: () => line, encoding: name });
      else if (bytes && code.length >= MIN_OPAQUE_CHARACTERS && (name === "base64" || name === "hex"))
        onOpaque({
          line,
          encoding: name,
          length: code.length,
          isProgram: PROGRAM.test(bytes.subarray(0, 8).toString("hex")),
        });
    }
  }
  return parts;
}

/** As `matchAll` finds them, but most texts have no run of these characters, so that the expression is not tried. */
function* matchesOf(text: string, code: Code): Generator<RegExpExecArray> {
  for (
    let from = nextRun(text, code, 0);
    from !== -1;
    from = nextRun(text, code, code.expression.lastIndex)
  ) {
    code.expression.lastIndex = from;
    const match = code.expression.exec(text);
    if (!match) return;
    yield match;
  }
}

/** Where the next run begins; -1: there is none. It looks at every `leastRun`-th character, since a run has one of them. */
function nextRun(text: string, { isMember, leastRun }: Code, from: number): number {
  const isIn = (at: number) => isMember[Math.min(text.charCodeAt(at), NOT_ASCII)] === true;
  let at = from + leastRun - 1;
  while (at < text.length) {
    if (!isIn(at)) {
      at += leastRun;
      continue;
    }
    let begin = at;
    while (begin > from && isIn(begin - 1)) begin--;
    let end = at + 1;
    while (end < text.length && end - begin < leastRun && isIn(end)) end++;
    if (end - begin >= leastRun) return begin;
    at = end + leastRun;
  }
  return -1;
}

const MIN_TEXT_CHARACTERS = 8;
const TEXT = /^[\t\n\r\x20-\x7e\u00a0-\ufffd]+$/u;
const utf8 = new TextDecoder();

/** null: the bytes are no text. */
function readText(bytes: Buffer): string | null {
  if (bytes.length < MIN_TEXT_CHARACTERS) return null;
  const isUtf16 =
    bytes.length % 2 === 0 && bytes.subarray(0, 40).every((byte, index) => index % 2 === 0 || byte === 0);
  if (!isUtf16 && !isUtf8(bytes)) return null;
  const text = isUtf16 ? bytes.toString("utf16le") : utf8.decode(bytes);
  return TEXT.test(text) && /[a-z]{2}/i.test(text) ? text : null;
}
