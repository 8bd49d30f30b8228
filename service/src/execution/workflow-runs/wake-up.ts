/** An auto-reset event: `wake` releases the waiter, or the next one that comes. */
export class WakeUp {
  #hasRung = false;
  #wake: (() => void) | null = null;

  wake(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  async wait(): Promise<void> {
    if (!this.#hasRung) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = null;
    this.#hasRung = false;
  }
}
