/** In UTF-16 units. */
const MAX_HELD = 64 * 1024 * 1024;
/** The part of it that must be free where a run begins. */
const ADMISSION_PART = 1 / 16;

/** What one answer holds. */
export interface AnswerAllocation {
  /** Holds more, or answers false and holds what it held: the answer may not be larger than what is left. */
  tryGrow(characters: number): boolean;
  /** Holds more in any case: of what is counted elsewhere, too, or is paid for. */
  grow(characters: number): void;
  release(): void;
}

/**
 * The memory that the answers of one process may take together while they come in and until they are recorded. An answer may grow as
 * long as it is no larger than what is left (the dynamic threshold of shared-memory switches, Choudhury and Hahne 1998): the large ones
 * fail first, and short ones go on beside them.
 */
export class AnswerMemory {
  readonly #max: number;
  #held = 0;

  constructor(max = MAX_HELD) {
    this.#max = max;
  }

  get held(): number {
    return this.#held;
  }

  /** There is no room for another answer. */
  get isFull(): boolean {
    return this.#held > this.#max * (1 - ADMISSION_PART);
  }

  allocate(): AnswerAllocation {
    let own = 0;
    const grow = (characters: number) => {
      own += characters;
      this.#held += characters;
    };
    return {
      grow,
      tryGrow: (characters) => {
        if (own + characters > this.#max - this.#held - characters) return false;
        grow(characters);
        return true;
      },
      release: () => grow(-own),
    };
  }
}
