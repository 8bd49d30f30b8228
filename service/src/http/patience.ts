import { Transform } from "node:stream";
import { invalidRequest } from "../errors.ts";

export interface UploadDeadlines {
  /** Without a byte. */
  idleMs: number;
  /** From the first byte to the last. */
  totalMs: number;
}

export const uploadDeadlines: UploadDeadlines = { idleMs: 20_000, totalMs: 600_000 };

/**
 * A client may be slow, but not for ever, and not silent. Nor may what it sent keep the parser waiting: of a part behind
 * the last one it tells that it begins, and never that it ends.
 */
export class Patience {
  /** Never resolves. */
  readonly lost: Promise<never>;
  readonly stream: Transform;
  readonly #total: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout;

  constructor({ idleMs, totalMs }: UploadDeadlines) {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.lost = promise;
    const lose = (why: string) => () => reject(invalidRequest("body", why));
    this.#total = setTimeout(lose(`took longer than ${totalMs / 1000} seconds`), totalMs);
    this.#idle = setTimeout(lose(`stood still for ${idleMs / 1000} seconds`), idleMs);
    this.stream = new Transform({
      transform: (chunk, _encoding, done) => {
        this.#idle.refresh();
        done(null, chunk);
      },
    });
  }

  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#idle);
  }
}
