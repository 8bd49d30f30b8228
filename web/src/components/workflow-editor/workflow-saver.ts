import type { ProductDetail, UpdateProduct } from "@stoa/sdk";
import { noticeEndOfSession, stoa } from "../../api.ts";
import { statusOf } from "../../lib/errors.ts";
import { ownCopyKey, removeCopy, writeCopy } from "./local-copies.ts";

export interface Saved {
  text: string;
  etag: string;
}

export type SaveState =
  | { kind: "saved"; at: number | null }
  | { kind: "waiting" | "saving" }
  /** In this browser only: it has problems, or it would change what is on sale. */
  | { kind: "local" }
  | { kind: "failed"; error: unknown }
  | { kind: "conflict"; theirs: Saved };

const SAVE_AFTER_MS = 800;
const RETRY_AFTER_MS = 5_000;
/** Other fields of the product may change between two attempts. */
const MAX_ATTEMPTS = 3;

/** A product that was never on sale is saved as one types. Each change of another one would be a version for its buyers. */
export const savesItself = ({ publishedAt }: Pick<ProductDetail, "publishedAt">): boolean =>
  publishedAt === null;

/** Writes the text of one editor, and never over what it has not seen. */
export class WorkflowSaver {
  readonly #productId: string;
  readonly #isAutomatic: boolean;
  readonly #copyKey: string;
  readonly #listeners = new Set<() => void>();
  #base: Saved;
  #text: string;
  #state: SaveState;
  /** The text whose check is known, and whether it can be saved. */
  #checked: { text: string; isValid: boolean } = { text: "", isValid: false };
  #isUrgent = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | null = null;

  constructor(product: ProductDetail, base: Saved, text: string) {
    this.#productId = product.id;
    this.#isAutomatic = savesItself(product);
    this.#copyKey = ownCopyKey(product.id);
    this.#base = base;
    this.#text = text;
    this.#state = text === base.text ? { kind: "saved", at: null } : { kind: "local" };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): SaveState => this.#state;

  get base(): Saved {
    return this.#base;
  }

  get isChanged(): boolean {
    return this.#text !== this.#base.text;
  }

  /** The text as it is now. This browser stores it at once, and the service soon where that is possible. */
  edit(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    this.storeCopy();
    if (this.#state.kind === "conflict") return;
    if (!this.isChanged) this.#show({ kind: "saved", at: Date.now() });
    else this.#show({ kind: this.#isAutomatic ? "waiting" : "local" });
    this.#saveIn(SAVE_AFTER_MS);
  }

  /** What has problems would be refused: it is saved when they are solved. */
  setChecked(text: string, isValid: boolean): void {
    this.#checked = { text, isValid };
    if (text !== this.#text || !this.isChanged || this.#state.kind === "conflict") return;
    if (!isValid && this.#isAutomatic) this.#show({ kind: "local" });
    this.#saveIn(this.#isUrgent ? 0 : SAVE_AFTER_MS);
  }

  get #isSavable(): boolean {
    return this.#isAutomatic && this.isChanged && this.#checked.text === this.#text && this.#checked.isValid;
  }

  /** In this browser, until it is saved. */
  storeCopy(): void {
    if (this.isChanged) writeCopy(this.#copyKey, { text: this.#text, base: this.#base.text, at: Date.now() });
    else removeCopy(this.#copyKey);
  }

  #saveIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isSavable) this.#timer = setTimeout(() => void this.saveNow(), ms);
  }

  /** Resolves when nothing is under way any more. */
  async saveNow(): Promise<void> {
    clearTimeout(this.#timer);
    // A check that is under way ends soon.
    this.#isUrgent = true;
    await this.#takeTurn(async () => {
      if (!this.#isSavable || this.#state.kind === "conflict") return;
      this.#isUrgent = false;
      await this.#save();
    });
  }

  /** One request at a time: an older text that is repeated after a lost connection must not follow a newer one. */
  async #takeTurn<T>(work: () => Promise<T>): Promise<T> {
    while (this.#running !== null) await this.#running;
    const turn = work();
    this.#running = turn
      .then(
        () => {},
        () => {},
      )
      .finally(() => {
        this.#running = null;
      });
    return turn;
  }

  async #save(): Promise<void> {
    this.#show({ kind: "saving" });
    const text = this.#text;
    try {
      await this.#send({ content: text });
    } catch (error) {
      noticeEndOfSession(error);
      if (this.#state.kind === "conflict") return;
      const isRefused = statusOf(error) === 400 || statusOf(error) === 422;
      this.#show(isRefused ? { kind: "local" } : { kind: "failed", error });
      if (!isRefused) this.#saveIn(RETRY_AFTER_MS);
    }
  }

  /** Sends a change with the version that this editor has seen. A conflict is shown, and thrown. */
  send(change: UpdateProduct & { content: string }): Promise<ProductDetail> {
    clearTimeout(this.#timer);
    return this.#takeTurn(() => this.#send(change));
  }

  async #send(change: UpdateProduct & { content: string }): Promise<ProductDetail> {
    const { data, headers } = await this.#sendUnlessConflict(change);
    this.#base = { text: change.content, etag: headers.get("etag") ?? "" };
    this.storeCopy();
    this.#show(this.isChanged ? { kind: "waiting" } : { kind: "saved", at: Date.now() });
    this.#saveIn(SAVE_AFTER_MS);
    return data;
  }

  async #sendUnlessConflict(change: UpdateProduct & { content: string }) {
    let { text, etag } = this.#base;
    for (let attempt = 1; ; attempt++) {
      try {
        return await stoa.products
          .update(this.#productId, change, { headers: { "if-match": etag } })
          .withResponse();
      } catch (error) {
        if (statusOf(error) !== 412 || attempt === MAX_ATTEMPTS) throw error;
        const theirs = await this.#fetchPresent();
        // Else something beside the text was changed, such as the price.
        if (theirs.text !== text && theirs.text !== change.content) {
          this.#show({ kind: "conflict", theirs });
          throw error;
        }
        ({ text, etag } = theirs);
      }
    }
  }

  async #fetchPresent(): Promise<Saved> {
    const { data, headers } = await stoa.products.get(this.#productId, {}).withResponse();
    return { text: data.content ?? "", etag: headers.get("etag") ?? "" };
  }

  /** After a choice: what the other tab saved has been seen. */
  acknowledge(theirs: Saved): void {
    this.#base = theirs;
    this.storeCopy();
    this.#show(
      this.isChanged ? { kind: this.#isAutomatic ? "waiting" : "local" } : { kind: "saved", at: Date.now() },
    );
    this.#saveIn(0);
  }

  showConflict(theirs: Saved): void {
    this.#show({ kind: "conflict", theirs });
  }

  close(): void {
    clearTimeout(this.#timer);
    void this.saveNow();
  }

  #show(state: SaveState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
