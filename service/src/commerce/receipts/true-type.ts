/** One glyph: its outline in units of the em, of straight lines and quadratic curves, and how far the pen moves on. */
export interface Glyph {
  path: { commands: { command: string; args: number[] }[] };
  advanceWidth: number;
}

export interface Typeface {
  unitsPerEm: number;
  ascent: number;
  descent: number;
}

interface Point {
  x: number;
  y: number;
  onCurve: boolean;
}

/** A glyph as the table `glyf` keeps it, with what other tables have to know of it. */
interface Outline {
  bytes: Buffer;
  points: number;
  contours: number;
  advance: number;
  box: { xMin: number; yMin: number; xMax: number; yMax: number };
}

/**
 * A TrueType font of some glyphs alone: the tables that a PDF asks for (ISO 32000-1, 9.9), in the plainest form that each may
 * have. Fonts packed as WOFF2 keep their outlines in another form, which cannot be copied into a PDF.
 */
export function writeTrueType(typeface: Typeface, glyphs: Glyph[]): Uint8Array {
  const outlines = glyphs.map(outlineOf);
  return writeTables({
    glyf: Buffer.concat(outlines.map(({ bytes }) => bytes)),
    head: headOf(typeface, outlines),
    hhea: hheaOf(typeface, outlines),
    hmtx: Buffer.concat(outlines.map(({ advance, box }) => int16s([advance, box.xMin]))),
    loca: locaOf(outlines),
    maxp: maxpOf(outlines),
  });
}

function contoursOf({ path }: Glyph): Point[][] {
  const contours: Point[][] = [];
  for (const { command, args } of path.commands) {
    if (command === "moveTo") contours.push([]);
    // All but the last pair of a curve are control points.
    for (let at = 0; at + 1 < args.length; at += 2)
      contours.at(-1)!.push({
        x: Math.round(args[at]!),
        y: Math.round(args[at + 1]!),
        onCurve: at + 2 === args.length,
      });
  }
  return contours.filter((contour) => contour.length > 0);
}

function outlineOf(glyph: Glyph): Outline {
  const contours = contoursOf(glyph);
  const points = contours.flat();
  const facts = {
    points: points.length,
    contours: contours.length,
    advance: Math.round(glyph.advanceWidth),
    box: boxOf(points),
  };
  // A glyph without an outline, such as a space, has no bytes.
  return { bytes: points.length === 0 ? Buffer.alloc(0) : glyfOf(contours, facts.box), ...facts };
}

const edge = (values: number[], choose: (...values: number[]) => number) =>
  values.length === 0 ? 0 : choose(...values);

function boxOf(points: Point[]): Outline["box"] {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return {
    xMin: edge(xs, Math.min),
    yMin: edge(ys, Math.min),
    xMax: edge(xs, Math.max),
    yMax: edge(ys, Math.max),
  };
}

/** Each coordinate as a difference of two bytes, each flag by itself. */
function glyfOf(contours: Point[][], { xMin, yMin, xMax, yMax }: Outline["box"]): Buffer {
  const points = contours.flat();
  let end = -1;
  const ends = contours.map((contour) => {
    end += contour.length;
    return end;
  });
  const steps = (axis: "x" | "y") => points.map((point, at) => point[axis] - (points[at - 1]?.[axis] ?? 0));
  const NO_INSTRUCTIONS = 0;
  const bytes = Buffer.concat([
    int16s([contours.length, xMin, yMin, xMax, yMax, ...ends, NO_INSTRUCTIONS]),
    Buffer.from(points.map(({ onCurve }) => (onCurve ? 1 : 0))),
    int16s(steps("x")),
    int16s(steps("y")),
  ]);
  return padded(bytes);
}

function locaOf(outlines: Outline[]): Buffer {
  let offset = 0;
  const offsets = outlines.map(({ bytes }) => {
    offset += bytes.length;
    return offset;
  });
  return uint32s([0, ...offsets]);
}

const VERSION_1 = 0x0001_0000;
const MAGIC = 0x5f0f_3cf5;
const LONG_OFFSETS = 1;

function headOf({ unitsPerEm }: Typeface, outlines: Outline[]): Buffer {
  const all = (name: keyof Outline["box"], choose: (...values: number[]) => number) =>
    edge(
      outlines.map(({ box }) => box[name]),
      choose,
    );
  const box = [all("xMin", Math.min), all("yMin", Math.min), all("xMax", Math.max), all("yMax", Math.max)];
  return Buffer.concat([
    // Version, revision, a checksum that nobody checks inside a PDF.
    uint32s([VERSION_1, VERSION_1, 0, MAGIC]),
    int16s([0, unitsPerEm]),
    // Made and changed at no time, so that the same glyphs are the same bytes.
    uint32s([0, 0, 0, 0]),
    // The box, no style, readable from 8 pixels on, left to right, and the form of loca and glyf.
    int16s([...box, 0, 8, 2, LONG_OFFSETS, 0]),
  ]);
}

function hheaOf({ ascent, descent }: Typeface, outlines: Outline[]): Buffer {
  const widest = edge(
    outlines.map(({ advance }) => advance),
    Math.max,
  );
  const rest = [widest, 0, 0, widest, 1, 0, 0, 0, 0, 0, 0, 0, outlines.length];
  return Buffer.concat([uint32s([VERSION_1]), int16s([Math.round(ascent), Math.round(descent), 0, ...rest])]);
}

function maxpOf(outlines: Outline[]): Buffer {
  const most = (count: "points" | "contours") =>
    edge(
      outlines.map((outline) => outline[count]),
      Math.max,
    );
  const NOTHING_ELSE = [0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
  return Buffer.concat([
    uint32s([VERSION_1]),
    int16s([outlines.length, most("points"), most("contours"), ...NOTHING_ELSE]),
  ]);
}

const HEADER_BYTES = 12;
const ENTRY_BYTES = 16;

/** The directory and the tables behind it, which stand in the order of their names. */
function writeTables(tables: Record<string, Buffer>): Uint8Array {
  const names = Object.keys(tables).sort();
  const power = Math.floor(Math.log2(names.length));
  const range = 16 * 2 ** power;
  const header = Buffer.concat([
    uint32s([VERSION_1]),
    int16s([names.length, range, power, names.length * ENTRY_BYTES - range]),
  ]);
  let offset = HEADER_BYTES + names.length * ENTRY_BYTES;
  const entries = names.map((name) => {
    const table = tables[name]!;
    const entry = [Buffer.from(name, "latin1"), uint32s([checksumOf(table), offset, table.length])];
    offset += padded(table).length;
    return Buffer.concat(entry);
  });
  return new Uint8Array(Buffer.concat([header, ...entries, ...names.map((name) => padded(tables[name]!))]));
}

function checksumOf(table: Buffer): number {
  const words = padded(table);
  let sum = 0;
  for (let at = 0; at < words.length; at += 4) sum = (sum + words.readUInt32BE(at)) >>> 0;
  return sum;
}

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);

/** Of two bytes each, whether they have a sign or not. */
function int16s(values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value & 0xffff, at * 2);
  return bytes;
}

function uint32s(values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, at * 4);
  return bytes;
}
