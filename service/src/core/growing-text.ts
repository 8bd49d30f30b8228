/** In UTF-16 code units. A piece is longer only to avoid splitting a surrogate pair. */
export const BLOCK = 4_096;

/** Checks only the last code unit: a regular expression would be tried at every position. */
function endsInHighSurrogate(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}

/**
 * A text that grows by small pieces and is read from any position after each. It consists of blocks, because slicing a concatenated string
 * copies all of it.
 */
export class GrowingText {
  readonly #blocks: string[] = [""];
  #length = 0;

  constructor(text = "") {
    this.add(text);
  }

  get length(): number {
    return this.#length;
  }

  add(piece: string): void {
    this.#length += piece.length;
    let last = (this.#blocks.pop() ?? "") + piece;
    for (; last.length >= BLOCK; last = last.slice(BLOCK)) this.#blocks.push(last.slice(0, BLOCK));
    this.#blocks.push(last);
  }

  /** Returns the next piece. Half of a surrogate pair waits for its other half unless `isAll`. */
  after(position: number, isAll: boolean): string {
    const at = Math.floor(position / BLOCK);
    const piece = this.#blocks[at]?.slice(position % BLOCK) ?? "";
    if (!endsInHighSurrogate(piece)) return piece;
    const lowSurrogate = this.#blocks[at + 1]?.slice(0, 1) ?? "";
    if (lowSurrogate !== "") return piece + lowSurrogate;
    return isAll ? piece : piece.slice(0, -1);
  }

  toString(): string {
    return this.#blocks.join("");
  }
}
