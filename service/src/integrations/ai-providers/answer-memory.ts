/** UTF-16 units. */
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** The share that must be free before a run starts. */
const ADMISSION_PART = 1 / 16;

export interface AnswerAllocation {
  /** Allocates, or returns false and allocates nothing: an answer may not exceed the free memory. */
  tryGrow(characters: number): boolean;
  /** Allocates in any case, for text that is counted elsewhere or paid for. */
  grow(characters: number): void;
  release(): void;
}

/**
 * Limits the memory of all answers of a process until they are recorded. An answer may grow while it is smaller than the free
 * memory (dynamic threshold, Choudhury and Hahne 1998). So large answers fail first, and short ones continue.
 */
export class AnswerMemory {
  readonly #max: number;
  #used = 0;

  constructor(max = MAX_CHARACTERS) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** No room for another answer. */
  get isFull(): boolean {
    return this.#used > this.#max * (1 - ADMISSION_PART);
  }

  allocate(): AnswerAllocation {
    let own = 0;
    const grow = (characters: number) => {
      own += characters;
      this.#used += characters;
    };
    return {
      grow,
      tryGrow: (characters) => {
        if (own + characters > this.#max - this.#used - characters) return false;
        grow(characters);
        return true;
      },
      release: () => grow(-own),
    };
  }
}
