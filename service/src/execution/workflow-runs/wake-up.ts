/** An auto-reset event: `wake` releases the waiter, or else the next call of `wait`. */
export class WakeUp {
  #isSet = false;
  #wake: (() => void) | null = null;

  wake(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  async wait(): Promise<void> {
    if (!this.#isSet) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = null;
    this.#isSet = false;
  }
}
