/** In UTF-16 units. A piece is longer only when it would cut a surrogate pair. */
export const BLOCK = 4_096;

/** By its last unit: a pattern would be tried at every other one, too. */
function endsInHighSurrogate(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}

/**
 * A text that grows by a word and is read from any place after each. In blocks, because to cut a piece out of a string
 * that was put together copies all of it, which for every word of a long text is far too much.
 */
export class GrowingText {
  /** All but the last are full. */
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

  /** What comes next from a place on; a letter of which only half has come waits for its other half, unless that will never come. */
  after(place: number, isAll: boolean): string {
    const at = Math.floor(place / BLOCK);
    const piece = this.#blocks[at]?.slice(place % BLOCK) ?? "";
    if (!endsInHighSurrogate(piece)) return piece;
    const other = this.#blocks[at + 1]?.slice(0, 1) ?? "";
    if (other !== "") return piece + other;
    return isAll ? piece : piece.slice(0, -1);
  }

  toString(): string {
    return this.#blocks.join("");
  }
}
