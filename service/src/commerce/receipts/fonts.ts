import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { create, type Font } from "fontkit";
import woff2 from "wawoff2/build/decompress_binding.js";
import { firstOf, required } from "../../core/required.ts";

// The package's own function is asynchronous for this alone. Letters are looked up synchronously, while a line is laid out.
await new Promise<void>((resolve) => {
  woff2.onRuntimeInitialized = resolve;
});

/** How thick lines are drawn beside what the outlines give, in parts of the em. */
interface Family {
  package: string;
  name: string;
  strokes: { regular: number; bold: number };
}

/**
 * In the order in which they are asked for a letter. The files have every weight, and are read in their lightest: of Noto Sans
 * that is a hair, which the stroke makes as thick as Inter.
 */
const FAMILIES: Family[] = [
  { package: "@fontsource-variable/inter", name: "inter", strokes: { regular: 0, bold: 0.03 } },
  {
    package: "@fontsource-variable/noto-sans-sc",
    name: "noto-sans-sc",
    strokes: { regular: 0.045, bold: 0.075 },
  },
  {
    package: "@fontsource-variable/noto-sans-kr",
    name: "noto-sans-kr",
    strokes: { regular: 0.045, bold: 0.075 },
  },
];

/** A file of a family, which has the letters of some ranges. */
interface Slice {
  /** Also the name under which a document knows it. */
  file: string;
  family: Family;
  ranges: [first: number, last: number][];
}

const require = createRequire(import.meta.url);
let known: Slice[] | undefined;

const slices = () => {
  known ??= FAMILIES.flatMap(slicesOf);
  return known;
};

/** A family that is not installed has none: its packages are optional. */
function slicesOf(family: Family): Slice[] {
  try {
    const ranges = require(`${family.package}/unicode.json`) as Record<string, string>;
    return Object.entries(ranges).map(([name, text]) => {
      const slice = name.replace(/[[\]]/g, "");
      const file = `${family.package}/files/${family.name}-${slice}-wght-normal.woff2`;
      return { file, family, ranges: text.split(",").map(rangeOf) };
    });
  } catch (error) {
    if ((error as { code?: string }).code === "MODULE_NOT_FOUND") return [];
    throw error;
  }
}

/** `U+4e00` or `U+4e00-4e0f`. */
function rangeOf(text: string): [number, number] {
  const [first = "", last = first] = text.replace("U+", "").split("-");
  return [Number.parseInt(first, 16), Number.parseInt(last, 16)];
}

/**
 * Names take three or four, a long title ten. A text that has a letter of each slice would keep the process busy for seconds:
 * beyond this its letters are not looked for.
 */
const MAX_FACES = 24;

/** A font of a document: it is opened when its first letter is. */
export interface Face {
  name: string;
  font: Font;
  strokes: Family["strokes"];
}

/** Opens what one document needs. Nothing is kept longer: a slice unpacked takes a hundred times its bytes. */
export class Faces {
  readonly #open = new Map<string, Face>();
  /** What lines of text stand on, and what stands in for letters that none has. */
  readonly base: Face = required(this.faceOf("A", null), "the font for Latin letters");

  /** The face that has all letters of a grapheme, the present one if it does; null: none has. */
  faceOf(grapheme: string, present: Face | null): Face | null {
    const codePoints = Array.from(grapheme, (letter) => letter.codePointAt(0) ?? 0);
    const start = firstOf(codePoints);
    const hasAll = ({ font }: Face) => codePoints.every((codePoint) => font.hasGlyphForCodePoint(codePoint));
    if (present && hasAll(present)) return present;
    for (const slice of slices()) {
      if (!slice.ranges.some(([first, last]) => start >= first && start <= last)) continue;
      const face = this.#faceOf(slice);
      if (face && hasAll(face)) return face;
    }
    return null;
  }

  #faceOf({ file, family }: Slice): Face | null {
    const open = this.#open.get(file);
    if (open) return open;
    if (this.#open.size >= MAX_FACES) return null;
    const font = create(unpackWoff2(file));
    // fontkit remembers what a glyph stands for from its first use; that may be as a part of another, and then for nothing.
    for (const codePoint of font.characterSet) font.glyphForCodePoint(codePoint);
    const face = { name: file, font, strokes: family.strokes };
    this.#open.set(file, face);
    return face;
  }
}

/** fontkit reads WOFF2 too, but its subset writer copies outlines, and WOFF2 stores them transformed. */
function unpackWoff2(file: string): Uint8Array {
  const trueType = woff2.decompress(readFileSync(require.resolve(file)));
  if (trueType === false) throw new Error(`${file} is not a WOFF2 font`);
  // A copy: these bytes stand in the memory of the module, which the next call uses again.
  return trueType.slice();
}
