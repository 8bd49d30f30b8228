/** The part of it that we use. */
declare module "fontkit" {
  interface Font {
    unitsPerEm: number;
    ascent: number;
    descent: number;
    /** Every code point that it has a letter for. */
    characterSet: number[];
    glyphForCodePoint(codePoint: number): Glyph;
    hasGlyphForCodePoint(codePoint: number): boolean;
    getGlyph(id: number): Glyph;
    createSubset(): Subset;
  }
  interface Glyph {
    path: { commands: { command: string; args: number[] }[] };
    advanceWidth: number;
  }
  /** What pdfkit asks for the bytes that it embeds. */
  interface Subset {
    /** The number under which the glyph stands in the subset. */
    includeGlyph(id: number): number;
    encode(): Uint8Array;
  }
  export function create(bytes: Uint8Array): Font;
}
