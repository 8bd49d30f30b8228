import fc from "fast-check";

const LARGEST = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;

/**
 * For `fc.string`: any character but half of a surrogate pair, as its unit `binary`. That unit lists all 1,112,064 of them
 * first, which takes 2 seconds and 100 MB in each worker.
 */
export const anyCharacter = fc.nat(LARGEST - SURROGATES).map(
  (index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES),
  (character) => indexOf(character),
);

/** fast-check asks for it to make shorter or similar texts of dangerous ones, such as `__proto__`. */
function indexOf(character: unknown): number {
  const code = typeof character === "string" ? character.codePointAt(0) : undefined;
  if (code === undefined || String.fromCodePoint(code) !== character)
    throw new TypeError("not one character");
  return code < FIRST_SURROGATE ? code : code - SURROGATES;
}
