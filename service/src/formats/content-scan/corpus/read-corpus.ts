import { readdirSync, readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import type { ScanFindingKind } from "@stoa/contract";

export interface Pattern {
  kind: ScanFindingKind;
  text: string;
  /** Not read while rules are written. */
  isHeldBack: boolean;
}

const HERE = import.meta.dirname;

/** In the order of the files, and the same at each call; every second pattern of a kind is held back. */
export function readPatterns(): Pattern[] {
  seed = FIRST_SEED;
  return readdirSync(HERE)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => {
      const bySource = JSON.parse(readFileSync(`${HERE}/${name}`, "utf8")) as Record<string, string[]>;
      return Object.values(bySource)
        .flat()
        .map((text, index) => ({
          kind: name.replace(".json", "") as ScanFindingKind,
          text: expandMacros(text),
          isHeldBack: index % 2 === 1,
        }));
    });
}

/** The CC0 prompts of the README. */
export const readHarmlessPrompts = (): string[] =>
  JSON.parse(brotliDecompressSync(readFileSync(`${HERE}/harmless-prompts.json.br`)).toString()) as string[];

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";

/** No secret and no payload stands in the repository as it is: macros such as `⟦base64:text⟧` make them here. */
const macros: Record<string, (argument: string) => string> = {
  random: (length) => pick(LETTERS + DIGITS, length),
  letters: (length) => pick(LETTERS, length),
  upper: (length) => pick(LETTERS.slice(0, 26) + DIGITS.slice(2, 8), length),
  digits: (length) => pick(DIGITS, length),
  hex: (argument) =>
    /^\d+$/.test(argument) ? pick("0123456789abcdef", argument) : Buffer.from(argument).toString("hex"),
  bech32: (length) => pick("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", length),
  base64: (text) => Buffer.from(text).toString("base64"),
  base64url: (text) => Buffer.from(text).toString("base64url"),
  base64utf16: (text) => Buffer.from(text, "utf16le").toString("base64"),
  base32: toBase32,
  binary: (text) => [...Buffer.from(text)].map((byte) => byte.toString(2).padStart(8, "0")).join(" "),
  charcodes: (text) => [...Buffer.from(text)].join(","),
  hexescape: (text) =>
    [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""),
  "unicode-escape": (text) => mapCharacters(text, (code) => `\\u${code.toString(16).padStart(4, "0")}`),
  percent: (text) => mapCharacters(text, (code) => `%${code.toString(16).padStart(2, "0")}`),
  entities: (text) => mapCharacters(text, (code) => `&#${code};`),
  tags: (text) => mapCharacters(text, (code) => String.fromCodePoint(0xe0000 + code)),
  selectors: (text) => mapCharacters(text, (code) => String.fromCodePoint(0xe0100 + code - 16)),
  "zero-width": (text) =>
    [...Buffer.from(text)]
      .map((byte) => byte.toString(2).padStart(8, "0").replaceAll("0", "\u200b").replaceAll("1", "\u200c"))
      .join(""),
  rot13: (text) =>
    text.replace(/[a-z]/gi, (letter) => {
      const base = letter <= "Z" ? 65 : 97;
      return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
    }),
  reverse: (text) => [...text].reverse().join(""),
  bold: (text) => shiftLetters(text, { upper: 0x1d400, lower: 0x1d41a }),
  circled: (text) => shiftLetters(text, { upper: 0x24b6, lower: 0x24d0 }),
  fullwidth: (text) => text.replace(/[!-~]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
};

/** The innermost first. */
function expandMacros(text: string): string {
  const expanded = text.replace(/⟦([\w-]+):([^⟦⟧]*)⟧/g, (_, name: string, argument: string) => {
    const macro = macros[name];
    if (!macro) throw new Error(`No macro is named ${name}`);
    return macro(argument);
  });
  return expanded === text ? text : expandMacros(expanded);
}

const mapCharacters = (text: string, change: (code: number) => string): string =>
  [...text].map((character) => change(character.codePointAt(0) ?? 0)).join("");

const shiftLetters = (text: string, { upper, lower }: { upper: number; lower: number }): string =>
  text.replace(/[a-z]/gi, (letter) =>
    String.fromCodePoint(letter.charCodeAt(0) + (letter <= "Z" ? upper - 65 : lower - 97)),
  );

function toBase32(text: string): string {
  const bits = [...Buffer.from(text)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(group.padEnd(5, "0"), 2)])
    .join("");
}

const FIRST_SEED = 20_260_320;
let seed = FIRST_SEED;

/** A linear congruential generator. */
function pick(alphabet: string, length: string): string {
  let text = "";
  for (let index = 0; index < Number(length); index++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    text += alphabet[Math.floor((seed / 2 ** 31) * alphabet.length)];
  }
  return text;
}
