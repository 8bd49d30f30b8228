import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type Font, type Glyph } from "fontkit";
import { Faces } from "./fonts.ts";

const fontOf = (letter: string): Font => new Faces().faceOf(letter, null)!.font;

function embed(font: Font, ids: number[]): Uint8Array {
  const subset = font.createSubset();
  for (const id of ids) subset.includeGlyph(id);
  return subset.encode();
}

for (const letter of ["A", "山", "한"])
  test(`the embedded subset for ${letter}: has all outlines and widths`, () => {
    const font = fontOf(letter);
    // In Inter: letters, a composite accent, and a blank without an outline.
    const ids = Array.from({ length: 200 }, (_, id) => id);
    const embedded = create(embed(font, ids));
    assert.equal(embedded.unitsPerEm, font.unitsPerEm);
    assert.equal(embedded.ascent, font.ascent);
    assert.equal(embedded.descent, font.descent);
    for (const id of ids) {
      const [source, read] = [font.getGlyph(id), embedded.getGlyph(id)];
      assert.equal(read.advanceWidth, source.advanceWidth);
      assert.deepEqual(cornersOf(read), cornersOf(source), `glyph ${id}`);
    }
    assert.ok(ids.some((id) => cornersOf(font.getGlyph(id)).length > 0));
  });

test("the same glyphs: same bytes", () => {
  const bytes = () => Buffer.from(embed(fontOf("A"), [0, 40]));
  assert.ok(bytes().equals(bytes()));
});

/** The ends of lines and curves; a reader may close a contour by another line. */
function cornersOf({ path }: Glyph): string[] {
  return path.commands
    .filter(({ command }) => command === "moveTo" || command === "quadraticCurveTo")
    .map(({ command, args }) => `${command} ${args.map(Math.round)}`);
}
