import assert from "node:assert/strict";
import type { Request, Response } from "playwright-core";
import type { WebPage } from "./web.ts";

/** What a person did in a tab, and how a stored text shows it. */
interface Edit {
  step: string;
  /** A later edit of the same kind takes the place of an earlier one. */
  kind: "addition" | "name" | "seconds" | "removal";
  isIn: (text: string) => boolean;
}

interface Write {
  tab: EditLog;
  /** The text that the tab's user knew: its ETag. */
  on: string;
  text: string;
}

/** The texts of one product by their ETags, in the order in which the service stored them. */
export class StoredTexts {
  readonly #texts = new Map<string, string>();
  readonly #writes: Write[] = [];

  constructor(etag: string, text: string) {
    this.#texts.set(etag, text);
  }

  add(write: Write, etag: string): void {
    this.#texts.set(etag, write.text);
    this.#writes.push(write);
  }

  /** Asserts that each write replaced a text that the user of its tab had seen. */
  mustBeSeen(): void {
    const blind = this.#writes.filter(({ tab, on, text }) => {
      const replaced = this.#texts.get(on);
      return replaced !== text && ![...tab.seen].some((etag) => this.#texts.get(etag) === replaced);
    });
    assert.deepEqual(
      blind.map(({ on, text }) => ({ replaced: this.#texts.get(on), by: text })),
      [],
    );
  }
}

/** The edits of one tab that are not stored yet, and the ETags of the texts that its user has seen. */
export class EditLog {
  readonly seen: Set<string>;
  readonly #stored: StoredTexts;
  readonly #path: string;
  #edits: Edit[] = [];
  /** The ETag of the text that the tab read last, as it does before it asks for a choice. */
  #fetched: string;

  constructor({ page }: WebPage, path: string, opened: string, stored: StoredTexts) {
    this.#path = path;
    this.#fetched = opened;
    this.seen = new Set([opened]);
    this.#stored = stored;
    page.on("response", (response) => this.#onResponse(response.request(), response));
  }

  #onResponse(request: Request, response: Response): void {
    const etag = response.headers()["etag"];
    if (new URL(request.url()).pathname !== this.#path || response.status() !== 200 || !etag) return;
    if (request.method() === "GET") this.#fetched = etag;
    if (request.method() !== "PATCH") return;
    const { content: text } = request.postDataJSON() as { content: string };
    this.#stored.add({ tab: this, on: request.headers()["if-match"] ?? "", text }, etag);
    this.seen.add(etag);
    this.#edits = this.#edits.filter(({ isIn }) => !isIn(text));
  }

  #add(edit: Edit): void {
    const isReplaced = ({ step, kind }: Edit) => step === edit.step && kind === edit.kind;
    this.#edits = [...this.#edits.filter((old) => !isReplaced(old)), edit];
  }

  added(step: string): void {
    this.#name(step, "addition");
  }

  #name(step: string, kind: "addition" | "name"): void {
    this.#add({ step, kind, isIn: (text) => text.includes(`"${step}"`) });
  }

  #isNew(id: string): boolean {
    return this.#edits.some(({ step, kind }) => step === id && kind === "addition");
  }

  /** `seconds`: a number that no other edit writes. */
  changed(step: string, seconds: string): void {
    this.#add({ step, kind: "seconds", isIn: (text) => text.includes(`"seconds": ${seconds}`) });
  }

  renamed(step: string, to: string): void {
    const kind = this.#isNew(step) ? "addition" : "name";
    this.#edits = this.#edits
      .filter((edit) => edit.step !== step || edit.kind === "seconds")
      .map((edit) => (edit.step === step ? { ...edit, step: to } : edit));
    this.#name(to, kind);
  }

  removed(step: string): void {
    const isNew = this.#isNew(step);
    this.#edits = this.#edits.filter((edit) => edit.step !== step);
    // A new step that goes before it is stored leaves nothing to store.
    if (isNew) return;
    this.#add({ step, kind: "removal", isIn: (text) => !text.includes(`"${step}"`) });
  }

  /** The user was shown what another tab stored, and keeps the own text or takes that one. */
  chose(side: "mine" | "theirs"): void {
    this.seen.add(this.#fetched);
    if (side === "theirs") this.#edits = [];
  }

  /** The steps whose edits are not stored. */
  get unsaved(): string[] {
    return this.#edits.map(({ step }) => step);
  }
}
