/**
 * Writes web/src/styles/inter-latin.gen.woff2: the Latin letters of Inter with the weights and features that the client's styles use,
 * half the size of the package's file. Run it after an update of the font, or when a style needs another weight or feature.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import subsetFont from "subset-font";

const STYLES = resolve(import.meta.dirname, "../web/src/styles");
const FONT = "@fontsource-variable/inter/files/inter-latin-opsz-normal.woff2";
/** `<b>` and `<strong>` are 700. */
const AXES = { wght: { min: 400, max: 700 } };
/** Those of base.css, and those that place and join letters in every text. */
const FEATURES = ["cv11", "ss03", "calt", "tnum", "ccmp", "kern", "liga", "locl", "mark", "mkmk"];

const css = readFileSync(join(STYLES, "fonts.css"), "utf8");
const [, ranges = ""] = /inter-latin\.gen\.woff2.*?unicode-range:\s*([^;]+);/s.exec(css) ?? [];
const characters = ranges.split(",").flatMap((range) => {
  const [first = 0, last = first] = range
    .trim()
    .slice(2)
    .split("-")
    .map((code) => Number.parseInt(code, 16));
  return Array.from({ length: last - first + 1 }, (_, index) => String.fromCodePoint(first + index));
});
const font = readFileSync(createRequire(import.meta.url).resolve(FONT));
const subset = await subsetFont(font, characters.join(""), {
  targetFormat: "woff2",
  variationAxes: AXES,
  keepFeatures: FEATURES,
});
writeFileSync(join(STYLES, "inter-latin.gen.woff2"), subset);
console.log(`${font.length} bytes with all weights and features, ${subset.length} with those in use`);
