import { createUtf8Decoder } from "./utf8-decoder.ts";

/**
 * The ways in which a text can be read. A reading turns the output of a model into letters, each with the place in the output at
 * which it begins. Readings of a text and of its encoding have the same letters.
 */

/** Receives a letter of a reading and the index of its beginning in the text. */
export type EmitLetter = (letter: string, at: number) => void;

export interface Reading {
  push(character: string, at: number): void;
}

/** Cyrillic and Greek letters that look like Latin ones. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ а: "a", в: "b", с: "c", е: "e", н: "h", і: "i", ј: "j", к: "k", м: "m", о: "o", р: "p", ѕ: "s" },
    ...{
      т: "t",
      у: "y",
      х: "x",
      α: "a",
      ε: "e",
      ι: "i",
      κ: "k",
      ν: "v",
      ο: "o",
      ρ: "p",
      τ: "t",
      υ: "u",
      χ: "x",
    },
  }),
);
/** As in "leetspeak"; l and i are one letter, because 1 stands for both. */
const DIGIT_LETTERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ "0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g" },
    ...{ "@": "a", $: "s", "!": "i", "|": "i", l: "i" },
  }),
);
const LETTER = /[\p{L}\p{N}]/u;
const IDEOGRAPH = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const VOWEL = /[aeiou]/;
/** An ideograph says as much as three letters. */
const IDEOGRAPH_LETTERS = 3;

const ASCII_LETTERS = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return /[a-z0-9]/i.test(character) ? character.toLowerCase() : "";
});

/** Without case, width, accents and invisible characters; empty for all other characters. */
export function toLetters(character: string): string {
  const ascii = ASCII_LETTERS[character.charCodeAt(0)];
  if (ascii !== undefined) return ascii;
  let letters = "";
  for (const each of character.normalize("NFKD").toLowerCase()) {
    if (!LETTER.test(each)) continue;
    letters += IDEOGRAPH.test(each) ? each.repeat(IDEOGRAPH_LETTERS) : each;
  }
  return letters;
}

export const letters = (emit: EmitLetter): Reading => ({
  push(character, at) {
    for (const letter of toLetters(character)) emit(letter, at);
  },
});

/** Looks through digits, signs and letters of other scripts that stand for Latin ones. */
export const similarLetters = (emit: EmitLetter): Reading => ({
  push(character, at) {
    const lower = character.toLowerCase();
    const similar = DIGIT_LETTERS.get(lower) ?? LOOK_ALIKES.get(lower);
    if (similar) emit(similar, at);
    else for (const letter of toLetters(character)) emit(DIGIT_LETTERS.get(letter) ?? letter, at);
  },
});

export const withoutVowels = (emit: EmitLetter): Reading =>
  letters((letter, at) => {
    if (!VOWEL.test(letter)) emit(letter, at);
  });

const A = 97;
const ALPHABET = 26;

/** The steps between neighboring letters: every shift of the alphabet, such as ROT13, has the same ones. */
export function alphabetSteps(emit: EmitLetter): Reading {
  let last: { code: number; at: number } | null = null;
  return letters((letter, at) => {
    const code = letter.charCodeAt(0) - A;
    if (code < 0 || code >= ALPHABET) return;
    if (last) emit(String.fromCharCode(A + ((code - last.code + ALPHABET) % ALPHABET)), last.at);
    last = { code, at };
  });
}

/** Words whole, each with the place of its first letter. A word ends when the next character is no letter. */
function words(onWord: (word: string, at: number) => void): Reading {
  let word = "";
  let begin = 0;
  return {
    push(character, at) {
      const more = toLetters(character);
      if (more === "" && word !== "") {
        onWord(word, begin);
        word = "";
      }
      if (more !== "" && word === "") begin = at;
      word += more;
    },
  };
}

const emitAll = (emit: EmitLetter, text: string, at: number) => {
  for (const letter of text) emit(letter, at);
};

/**
 * The letters of each word in the order of the alphabet: words with mixed letters are alike. So are those of Pig Latin, because the
 * letters of its endings, "ay" and "way", do not count.
 */
export const sortedWords = (emit: EmitLetter): Reading =>
  words((word, at) => emitAll(emit, [...word.replace(/[awy]/g, "")].sort().join(""), at));

/** Acrostics, and spelling alphabets such as "Alfa Bravo". */
export const firstLetters = (emit: EmitLetter): Reading => words((word, at) => emit(word.charAt(0), at));

/** Every `step`-th word: fillers between words are skipped. */
export function everyWord(step: number, offset: number): (emit: EmitLetter) => Reading {
  return (emit) => {
    let count = 0;
    return words((word, at) => {
      if (count++ % step === offset) emitAll(emit, word, at);
    });
  };
}

/** Every `step`-th letter. */
export function everyLetter(step: number, offset: number): (emit: EmitLetter) => Reading {
  return (emit) => {
    let count = 0;
    return letters((letter, at) => {
      if (count++ % step === offset) emit(letter, at);
    });
  };
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Bytes from characters of `bits` each, as UTF-8. `skip`: how many characters precede the first byte. */
function bitsOf(
  toValue: (character: string) => number,
  bits: number,
  skip: number,
): (emit: EmitLetter) => Reading {
  return (emit) => {
    const decode = createUtf8Decoder();
    const decoded = letters(emit);
    let [buffer, size, left] = [0, 0, skip];
    return {
      push(character, at) {
        const value = toValue(character);
        if (value < 0 || left-- > 0) return;
        buffer = ((buffer << bits) | value) & 0xffff;
        size += bits;
        if (size < 8) return;
        size -= 8;
        for (const each of decode((buffer >> size) & 0xff)) decoded.push(each, at);
      },
    };
  };
}

const base64Value = (character: string) =>
  BASE64.indexOf(character === "-" ? "+" : character === "_" ? "/" : character);
const base32Value = (character: string) => BASE32.indexOf(character.toUpperCase());
const hexValue = (character: string) => "0123456789abcdef".indexOf(character.toLowerCase());

const repeated = (count: number, make: (at: number) => (emit: EmitLetter) => Reading) =>
  Array.from({ length: count }, (_, at) => make(at));

/** Each number is given as its digits, with the place where it begins. */
function digitRuns(onNumber: (digits: string, at: number) => void): Reading {
  let digits = "";
  let begin = 0;
  return {
    push(character, at) {
      if (character >= "0" && character <= "9") {
        if (digits === "") begin = at;
        digits += character;
        return;
      }
      if (digits !== "") onNumber(digits, begin);
      digits = "";
    },
  };
}

/** Each number stands for one letter. */
const numbers =
  (toLetter: (digits: string) => string) =>
  (emit: EmitLetter): Reading =>
    digitRuns((digits, at) => emitAll(emit, toLetter(digits), at));

/** Each number is a byte of UTF-8, as letters outside of ASCII have several. */
const byteNumbers =
  (base: number) =>
  (emit: EmitLetter): Reading => {
    const decode = createUtf8Decoder();
    const decoded = letters(emit);
    return digitRuns((digits, at) => {
      const byte = Number.parseInt(digits, base);
      if (!(byte <= 0xff)) return;
      for (const each of decode(byte)) decoded.push(each, at);
    });
  };

const MAX_CODE_POINT = 0x10ffff;
const codePoint = (digits: string, base: number) => {
  const code = Number.parseInt(digits, base);
  return code <= MAX_CODE_POINT ? toLetters(String.fromCodePoint(code)) : "";
};

const HEX_DIGITS_OF_A_UNIT = 4;

/** Code units of UTF-16: `\u00e9`, `U+00E9`, `&#xe9;`. */
function codeUnits(emit: EmitLetter): Reading {
  const decoded = letters(emit);
  let [digits, begin, isMarked] = ["", 0, false];
  let high = "";
  const end = () => {
    const unit = String.fromCharCode(Number.parseInt(digits, 16));
    digits = "";
    isMarked = false;
    // Half of a character outside of the Basic Multilingual Plane waits for the other half.
    if (/[\ud800-\udbff]/.test(unit)) high = unit;
    else {
      decoded.push(high + unit, begin);
      high = "";
    }
  };
  return {
    push(character, at) {
      if (isMarked && hexValue(character) >= 0) {
        if (digits === "") begin = at;
        digits += character;
        if (digits.length === HEX_DIGITS_OF_A_UNIT) end();
        return;
      }
      if (digits !== "") end();
      isMarked = /[ux]/i.test(character) || (isMarked && /[+{]/.test(character));
    },
  };
}
const positionInAlphabet = (digits: string) =>
  Number(digits) >= 1 && Number(digits) <= ALPHABET ? String.fromCharCode(A - 1 + Number(digits)) : "";

const MORSE =
  ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----.".split(
    " ",
  );
const MORSE_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

function morse(emit: EmitLetter): Reading {
  let signs = "";
  let begin = 0;
  return {
    push(character, at) {
      const sign = /[.·•]/.test(character) ? "." : /[-–—_−]/.test(character) ? "-" : "";
      if (sign !== "" && signs === "") begin = at;
      signs += sign;
      if (sign !== "" || signs === "") return;
      const letter = MORSE_LETTERS[MORSE.indexOf(signs)];
      if (letter) emit(letter, begin);
      signs = "";
    },
  };
}

/** What a reading is compared with: the forms of the hidden text under the same transformation. */
export const comparedForms = {
  letters,
  similarLetters,
  withoutVowels,
  alphabetSteps,
  sortedWords,
} as const;
export type ComparedForm = keyof typeof comparedForms;

/** Every reading of an output, with the form of the hidden text that it is compared with. Decoding: an honest text has no meaning in it. */
export const readings: readonly {
  form: ComparedForm;
  isDecoding: boolean;
  read: (emit: EmitLetter) => Reading;
}[] = [
  ...(Object.keys(comparedForms) as ComparedForm[]).map((form) => ({
    ...{ form, isDecoding: false, read: comparedForms[form] },
  })),
  ...[
    firstLetters,
    ...[2, 3, 4].flatMap((step) => repeated(step, (offset) => everyWord(step, offset))),
    ...[2, 3].flatMap((step) => repeated(step, (offset) => everyLetter(step, offset))),
    ...repeated(4, (skip) => bitsOf(base64Value, 6, skip)),
    ...repeated(8, (skip) => bitsOf(base32Value, 5, skip)),
    ...repeated(2, (skip) => bitsOf(hexValue, 4, skip)),
    numbers((digits) => codePoint(digits, 10)),
    numbers((digits) => codePoint(digits, 8)),
    numbers((digits) => (/^[01]{6,}$/.test(digits) ? codePoint(digits, 2) : "")),
    ...[10, 8, 2].map(byteNumbers),
    codeUnits,
    numbers(positionInAlphabet),
    morse,
  ].map((read) => ({ form: "letters" as const, isDecoding: true, read })),
];
