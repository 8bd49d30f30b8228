import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { create } from "fontkit";
import { type Glyph, writeTrueType } from "./true-type.ts";

const require = createRequire(import.meta.url);
const inter = create(
  readFileSync(require.resolve("@fontsource-variable/inter/files/inter-latin-wght-normal.woff2")),
);

test("what is written is read again: every outline and every width", () => {
  // The letters, an accent that is made of two parts, and a blank without an outline.
  const glyphs: Glyph[] = Array.from({ length: 200 }, (_, id) => inter.getGlyph(id));
  const again = create(writeTrueType(inter, glyphs));
  assert.equal(again.unitsPerEm, inter.unitsPerEm);
  assert.equal(again.ascent, inter.ascent);
  assert.equal(again.descent, inter.descent);
  for (const [id, { path, advanceWidth }] of glyphs.entries()) {
    const read = again.getGlyph(id);
    assert.equal(read.advanceWidth, Math.round(advanceWidth));
    assert.deepEqual(cornersOf(read.path), cornersOf(path), `glyph ${id}`);
  }
});

test("the same glyphs are the same bytes", () => {
  const bytes = () => writeTrueType(inter, [inter.getGlyph(0), inter.getGlyph(40)]);
  assert.deepEqual(bytes(), bytes());
});

/** Where its lines and curves end; a reader may close a contour by a line of its own. */
function cornersOf({ commands }: Glyph["path"]): string[] {
  return commands
    .filter(({ command }) => command === "moveTo" || command === "quadraticCurveTo")
    .map(({ command, args }) => `${command} ${args.map(Math.round)}`);
}
