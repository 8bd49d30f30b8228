declare module "fontkit" {
  interface Font {
    unitsPerEm: number;
    ascent: number;
    descent: number;
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
  interface Subset {
    /** Returns the glyph's number in the subset. */
    includeGlyph(id: number): number;
    encode(): Uint8Array;
  }
  export function create(bytes: Uint8Array): Font;
}
