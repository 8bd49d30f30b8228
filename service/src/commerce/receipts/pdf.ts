import { buffer } from "node:stream/consumers";
import PDFDocument from "pdfkit";
import { type Face, Faces } from "./fonts.ts";
import type { ReceiptText } from "./receipt.ts";

const MARGIN = 56;
const INK = "#1b1f24";
const SOFT = "#57606a";
const LINE = "#d0d7de";
const AMOUNT_WIDTH = 150;
const GAP = 16;
/** The maximum heights, in points, of a line with a title of 120 characters and of the sums with the footer. */
const LINE_HEIGHT = 80;
const SUMS_HEIGHT = 200;
/** Two lines of text. */
const SUM_HEIGHT = 48;
const SUMS_WIDTH = 350;

export function renderReceiptPdf(text: ReceiptText): Promise<Buffer> {
  const doc = new PDFDocument({
    size: "A4",
    margin: MARGIN,
    lang: "en",
    displayTitle: true,
    info: { Title: text.title, Author: text.service.name, CreationDate: text.issuedAt },
  });
  const bytes = buffer(doc);
  const pen = penFor(doc);
  drawHead(pen, text);
  drawFacts(pen, text);
  drawLines(pen, text);
  drawSums(pen, text);
  drawFoot(pen, text);
  doc.end();
  return bytes;
}

interface Pen {
  doc: PDFKit.PDFDocument;
  faces: Faces;
  left: number;
  right: number;
  /** Adds a footnote that explains the stand-in. */
  hasStandIns: boolean;
}

interface Look {
  face?: keyof Face["strokes"];
  size?: number;
  color?: string;
}

interface Lettering extends Look {
  width: number;
  align?: "left" | "right";
}

function penFor(doc: PDFKit.PDFDocument): Pen {
  return { doc, faces: new Faces(), left: MARGIN, right: doc.page.width - MARGIN, hasStandIns: false };
}

/** Returns the y position below the text. */
function write(pen: Pen, text: string, x: number, y: number, lettering: Lettering): number {
  const { face = "regular", size = 10, color = INK, width, align = "left" } = lettering;
  const { doc, faces } = pen;
  const { runs, hasStandIns } = runsOf(text, faces);
  pen.hasStandIns ||= hasStandIns;
  // Fonts differ in height: align them by baseline, not by top.
  const ascent = (faces.base.font.ascent / faces.base.font.unitsPerEm) * size;
  doc.fontSize(size).fillColor(color).strokeColor(color);
  for (const [at, run] of runs.entries()) {
    useFace(doc, run.face);
    const stroke = run.face.strokes[face];
    doc.lineWidth(stroke * size);
    const isLast = at === runs.length - 1;
    const options = { width, align, lineGap: 2, continued: !isLast, fill: true, stroke: stroke > 0 };
    const position: [number?, number?] = at === 0 ? [x, y + ascent] : [];
    doc.text(run.text, ...position, { ...options, baseline: "alphabetic" });
  }
  doc.y -= ascent;
  return doc.y;
}

function useFace(doc: PDFKit.PDFDocument, { name, font }: Face): void {
  // pdfkit embeds a font once for each name.
  doc.registerFont(name, font as unknown as Buffer);
  doc.font(name);
}

function drawHead(pen: Pen, text: ReceiptText): void {
  const width = (pen.right - pen.left) / 2;
  write(pen, text.service.name, pen.left + width, MARGIN + 8, {
    face: "bold",
    size: 12,
    width,
    align: "right",
  });
  pen.doc.y = write(pen, text.heading, pen.left, MARGIN, { face: "bold", size: 24, width }) + 24;
}

function drawFacts(pen: Pen, text: ReceiptText): void {
  const facts = text.facts.map(({ label, value }) => ({ label, values: [value] }));
  const parties = text.parties.map(({ role, name, email }) => ({
    label: role,
    values: email === undefined ? [name] : [name, email],
  }));
  const cells = [...facts, ...parties];
  const columnWidth = (pen.right - pen.left) / 2;
  for (let at = 0; at < cells.length; at += 2) {
    const top = pen.doc.y;
    const bottoms = cells
      .slice(at, at + 2)
      .map((cell, column) => drawCell(pen, cell, pen.left + column * columnWidth, top, columnWidth - GAP));
    pen.doc.y = Math.max(...bottoms) + 12;
  }
}

interface Cell {
  label: string;
  values: string[];
}

function drawCell(pen: Pen, { label, values }: Cell, x: number, y: number, width: number): number {
  const below = write(pen, label, x, y, { size: 9, color: SOFT, width });
  return values.reduce((top, value) => write(pen, value, x, top, { width }), below);
}

function drawLines(pen: Pen, text: ReceiptText): void {
  pen.doc.y += 16;
  drawRow(pen, pen.left, text.lineLabel, "Amount", { size: 9, color: SOFT });
  rule(pen);
  for (const { title, detail, amount } of text.lines) {
    mustHaveRoom(pen, LINE_HEIGHT);
    drawRow(pen, pen.left, title, amount, {});
    const width = pen.right - pen.left - AMOUNT_WIDTH - GAP;
    write(pen, detail, pen.left, pen.doc.y, { size: 9, color: SOFT, width });
    rule(pen);
  }
}

function drawSums(pen: Pen, text: ReceiptText): void {
  const left = pen.right - SUMS_WIDTH;
  mustHaveRoom(pen, SUMS_HEIGHT);
  for (const { label, amount, isMain } of text.sums) {
    mustHaveRoom(pen, SUM_HEIGHT);
    drawRow(pen, left, label, amount, isMain ? { face: "bold", size: 13 } : {});
    pen.doc.y += 4;
  }
}

/** The amount comes first: the label may wrap, and the next row starts below it. */
function drawRow(pen: Pen, left: number, label: string, amount: string, look: Look): void {
  const top = pen.doc.y;
  const amountLeft = pen.right - AMOUNT_WIDTH;
  write(pen, amount, amountLeft, top, { ...look, width: AMOUNT_WIDTH, align: "right" });
  write(pen, label, left, top, { ...look, width: amountLeft - left - GAP });
}

/** pdfkit breaks pages inside each text, which would split a row. */
function mustHaveRoom({ doc }: Pen, height: number): void {
  if (doc.y + height > doc.page.height - MARGIN) doc.addPage();
}

function drawFoot(pen: Pen, { service }: ReceiptText): void {
  const width = pen.right - pen.left;
  const look = { size: 9, color: SOFT, width };
  const below = write(pen, `${service.name} · ${service.origin}`, pen.left, pen.doc.y + 32, look);
  if (pen.hasStandIns) {
    write(
      pen,
      `${STAND_IN} stands for a letter that this PDF has no font for; the web page shows it.`,
      pen.left,
      below,
      look,
    );
  }
}

function rule(pen: Pen): void {
  const y = pen.doc.y + 6;
  pen.doc.moveTo(pen.left, y).lineTo(pen.right, y).lineWidth(0.75).strokeColor(LINE).stroke();
  pen.doc.y = y + 8;
}

/** The base font has this character. */
const STAND_IN = "*";
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

interface Run {
  face: Face;
  text: string;
}

/** Splits text into runs of one font, with a stand-in for missing glyphs. Works by grapheme: half an emoji or syllable is unreadable. */
export function runsOf(text: string, faces: Faces): { runs: Run[]; hasStandIns: boolean } {
  let hasStandIns = false;
  const runs: Run[] = [];
  for (const { segment } of graphemes.segment(text.normalize("NFC").replace(/\s+/g, " "))) {
    const present = runs.at(-1);
    const found = faces.faceOf(segment, present?.face ?? null);
    hasStandIns ||= found === null;
    const face = found ?? faces.base;
    const letter = found ? segment : STAND_IN;
    if (present?.face === face) present.text += letter;
    else runs.push({ face, text: letter });
  }
  return { runs, hasStandIns };
}
