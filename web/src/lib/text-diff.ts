import { diffLines, diffWordsWithSpace } from "diff";

export interface DiffPart {
  text: string;
  isChanged: boolean;
}

export interface DiffLine {
  kind: "same" | "added" | "removed";
  /** In the text that the line is of. */
  line: number;
  parts: DiffPart[];
}

/** `gap`: unchanged lines that are left out. */
export type DiffRow = DiffLine | { kind: "gap"; line: number; count: number };

/** Beyond this, two texts have nothing in common that a reader could follow. */
const LIMITS = { timeout: 500 };
const CONTEXT_LINES = 3;

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

interface Block {
  kind: DiffLine["kind"];
  text: string;
}

function blocksOf(before: string, after: string): Block[] {
  const changes = diffLines(before, after, LIMITS);
  if (!changes)
    return [
      { kind: "removed", text: before },
      { kind: "added", text: after },
    ];
  return changes.map(({ added, removed, value }) => ({
    kind: added ? "added" : removed ? "removed" : "same",
    text: value,
  }));
}

const wholeLines = (text: string): DiffPart[][] =>
  linesOf(text).map((line) => [{ text: line, isChanged: false }]);

/** The parts of a text that are split where its lines end. */
function splitParts(parts: DiffPart[]): DiffPart[][] {
  const lines: DiffPart[][] = [[]];
  for (const { text, isChanged } of parts)
    for (const [at, piece] of text.split("\n").entries()) {
      if (at > 0) lines.push([]);
      if (piece !== "") lines.at(-1)?.push({ text: piece, isChanged });
    }
  if (lines.at(-1)?.length === 0) lines.pop();
  return lines;
}

/** A removed block and the one that replaces it, with the words that changed. */
function wordsOf(removed: string, added: string): [DiffPart[][], DiffPart[][]] {
  const words = diffWordsWithSpace(removed, added, LIMITS);
  if (!words) return [wholeLines(removed), wholeLines(added)];
  const side = (other: "added" | "removed") =>
    splitParts(
      words
        .filter((word) => !word[other])
        .map(({ value, added, removed }) => ({ text: value, isChanged: added || removed })),
    );
  return [side("added"), side("removed")];
}

/** Every line of both texts. With `words`, replaced lines say which of their words changed. */
function listLines(before: string, after: string, form: "words" | "lines"): DiffLine[] {
  const blocks = blocksOf(before, after);
  const lines: DiffLine[] = [];
  let [oldLine, newLine] = [1, 1];
  const push = (kind: DiffLine["kind"], rows: DiffPart[][]) => {
    for (const parts of rows) {
      lines.push({ kind, line: kind === "removed" ? oldLine : newLine, parts });
      if (kind !== "added") oldLine++;
      if (kind !== "removed") newLine++;
    }
  };
  for (let at = 0; at < blocks.length; at++) {
    const block = blocks[at];
    const next = blocks[at + 1];
    if (!block) break;
    if (form === "words" && block.kind === "removed" && next?.kind === "added") {
      const [removed, added] = wordsOf(block.text, next.text);
      push("removed", removed);
      push("added", added);
      at++;
    } else push(block.kind, wholeLines(block.text));
  }
  return lines;
}

/** The lines that changed, each with three around it, and gaps between them. */
export function diffTexts(before: string, after: string, form: "words" | "lines"): DiffRow[] {
  const lines = listLines(before, after, form);
  const isNear = lines.map(() => false);
  for (const [at, { kind }] of lines.entries())
    if (kind !== "same")
      isNear.fill(true, Math.max(0, at - CONTEXT_LINES), Math.min(lines.length, at + CONTEXT_LINES + 1));
  const rows: DiffRow[] = [];
  for (const [at, line] of lines.entries()) {
    const last = rows.at(-1);
    if (isNear[at]) rows.push(line);
    else if (last?.kind === "gap") last.count++;
    else rows.push({ kind: "gap", line: line.line, count: 1 });
  }
  return rows;
}
