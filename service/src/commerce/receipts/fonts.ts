import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { create, type Font } from "fontkit";
import woff2 from "wawoff2/build/decompress_binding.js";
import { firstOf, required } from "../../core/required.ts";

// The package's own function is asynchronous only to wait for this. Text layout looks up glyphs synchronously.
await new Promise<void>((resolve) => {
  woff2.onRuntimeInitialized = resolve;
});

/** `strokes`: the width of an extra stroke around the outlines, in em. */
interface Family {
  package: string;
  name: string;
  strokes: { regular: number; bold: number };
}

/** In order of lookup. Variable fonts open in their lightest weight, a hairline in Noto Sans: the stroke makes it as thick as Inter. */
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

/** One file of a family: the glyphs of some Unicode ranges. */
interface Slice {
  /** Also the font's name in the document. */
  file: string;
  family: Family;
  ranges: [first: number, last: number][];
}

const require = createRequire(import.meta.url);
let cachedSlices: Slice[] | undefined;

const slices = () => {
  cachedSlices ??= FAMILIES.flatMap(slicesOf);
  return cachedSlices;
};

/** The packages are optional: a missing family has no slices. */
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

function rangeOf(text: string): [number, number] {
  const [first = "", last = first] = text.replace("U+", "").split("-");
  return [Number.parseInt(first, 16), Number.parseInt(last, 16)];
}

/** Names need 3 or 4 slices, long titles 10. Opening a slice for each character of a hostile text would block the process for seconds. */
const MAX_FACES = 24;

export interface Face {
  name: string;
  font: Font;
  strokes: Family["strokes"];
}

/** One cache for each document: an unpacked slice takes a hundred times its file size. */
export class Faces {
  readonly #open = new Map<string, Face>();
  /** Sets the baseline and renders the stand-in for missing glyphs. */
  readonly base: Face = required(this.faceOf("A", null), "the font for Latin letters");

  /** Returns a face with all code points of the grapheme, preferably the present one; null: no font has them. */
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
    // fontkit assigns code points to a glyph at its first use. A first use as part of a composite glyph would assign none.
    for (const codePoint of font.characterSet) font.glyphForCodePoint(codePoint);
    const face = { name: file, font, strokes: family.strokes };
    this.#open.set(file, face);
    return face;
  }
}

/** fontkit can read WOFF2, but its subset writer copies outlines, and WOFF2 stores them transformed. */
function unpackWoff2(file: string): Uint8Array {
  const trueType = woff2.decompress(readFileSync(require.resolve(file)));
  if (trueType === false) throw new Error(`${file} is not a WOFF2 font`);
  // A copy: the next call reuses this WebAssembly memory.
  return trueType.slice();
}
