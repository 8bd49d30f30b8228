import { stoa } from "../../api.ts";
import { statusOf } from "../../lib/errors.ts";
import { storageKey } from "../../session.ts";
import {
  type LocalChanges,
  readLocalChanges,
  removeLocalChanges,
  writeLocalChanges,
} from "./draft-backends.ts";
import { DRAFT_FIELDS, type Draft } from "./draft-fields.ts";
import type { DraftStore } from "./draft-store.ts";

/** The state in which this browser and the service last had the same changes. */
interface Synced {
  /** Of the draft at the service. */
  etag: string;
  /** Of the changes in this browser; null: there were none. */
  tag: string | null;
  draft: Draft | null;
}

interface Remote {
  etag: string;
  changes: Pick<LocalChanges, "draft" | "origin"> | null;
}

const SYNC_AFTER_MS = 1_000;
/** Each attempt ends because another device saved meanwhile. */
const MAX_ATTEMPTS = 3;

/**
 * Saves the changes of a product that was on sale at the service, too, and takes over those of other devices. The browser's storage stays
 * the place that the editor writes: it works without a connection, and for all tabs.
 */
export class DraftMirror {
  readonly #id: string;
  readonly #store: DraftStore;
  readonly #onPublished: () => Promise<void>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | null = null;
  /** What the open question compares the draft with. */
  #asked: { etag: string; draft: Draft } | null = null;
  readonly #stop: () => void;

  constructor(id: string, store: DraftStore, onPublished: () => Promise<void>) {
    this.#id = id;
    this.#store = store;
    this.#onPublished = onPublished;
    this.#stop = store.subscribe(() => {
      const { save, conflict } = store.getState();
      if (save.kind === "saved" && !conflict && this.#isChanged()) this.#schedule();
    });
  }

  close(): void {
    this.#stop();
    clearTimeout(this.#timer);
    if (this.#isChanged()) void this.sync();
  }

  /** Without a connection it waits for the next change. */
  sync(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running ??= inTurn(nameOf(this.#id), () => this.#sync())
      .catch(() => undefined)
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.sync(), SYNC_AFTER_MS);
  }

  #isChanged(): boolean {
    return (readLocalChanges(this.#id)?.tag ?? null) !== (readSynced(this.#id)?.tag ?? null);
  }

  async #sync(): Promise<void> {
    if (this.#store.getState().conflict) return;
    const known = readSynced(this.#id);
    if (known && !this.#asked && this.#isChanged() && (await this.#write(known.etag))) return;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const remote = await this.#read();
      if (this.#store.getState().conflict) return;
      if (remote.etag !== readSynced(this.#id)?.etag && !(await this.#takeOver(remote))) return;
      if (!this.#isChanged() || (await this.#write(remote.etag))) return;
    }
  }

  async #read(): Promise<Remote> {
    const { data, headers } = await stoa.products.draft.get(this.#id).withResponse();
    return { etag: headers.get("etag") ?? "", changes: isChanges(data.changes) ? data.changes : null };
  }

  /** Returns whether no question is open. */
  async #takeOver({ etag, changes }: Remote): Promise<boolean> {
    const local = readLocalChanges(this.#id);
    const synced = readSynced(this.#id);
    if (this.#asked?.etag === etag) {
      this.#remember({ etag, tag: null, draft: this.#asked.draft });
      this.#asked = null;
      return true;
    }
    if (!this.#isChanged() && changes === null) {
      if (local) await this.#afterPublication();
      this.#remember({ etag, tag: null, draft: null });
      return true;
    }
    if (!this.#isChanged() || !local) {
      if (changes === null) return true;
      const tag = crypto.randomUUID();
      writeLocalChanges(this.#id, { ...changes, tag });
      this.#remember({ etag, tag, draft: changes.draft });
      await this.#store.refresh();
      return true;
    }
    // Published elsewhere: what was changed here since is compared with the product when it is published.
    const base = this.#asked?.draft ?? synced?.draft ?? local.origin.draft;
    if (changes !== null && !this.#store.compareWith(base, changes.draft)) {
      this.#asked = { etag, draft: changes.draft };
      return false;
    }
    await this.#store.saveNow();
    this.#remember({ etag, tag: null, draft: changes?.draft ?? null });
    return true;
  }

  async #afterPublication(): Promise<void> {
    removeLocalChanges(this.#id);
    await this.#onPublished();
    await this.#store.refresh();
  }

  /** Returns false if another device saved meanwhile. */
  async #write(etag: string): Promise<boolean> {
    const local = readLocalChanges(this.#id);
    const changes = local && { draft: local.draft, origin: local.origin };
    try {
      const { headers } = await stoa.products.draft
        .set(this.#id, { changes }, { headers: { "if-match": etag } })
        .withResponse();
      this.#remember({
        etag: headers.get("etag") ?? "",
        tag: local?.tag ?? null,
        draft: local?.draft ?? null,
      });
      return true;
    } catch (error) {
      if (statusOf(error) === 412) return false;
      throw error;
    }
  }

  #remember(synced: Synced): void {
    localStorage.setItem(nameOf(this.#id), JSON.stringify(synced));
  }
}

/** Any client may store another object. */
function isChanges(given: unknown): given is NonNullable<Remote["changes"]> {
  const { draft, origin } = (given ?? {}) as { draft?: unknown; origin?: { draft?: unknown; tag?: unknown } };
  const isDraft = (one: unknown) =>
    typeof one === "object" && one !== null && DRAFT_FIELDS.every((field) => field in one);
  return isDraft(draft) && isDraft(origin?.draft) && typeof origin?.tag === "string";
}

/** Tabs of one browser would only repeat each other's requests. Only secure origins have locks. */
const inTurn = (name: string, work: () => Promise<void>): Promise<void> =>
  isSecureContext ? navigator.locks.request(name, work) : work();

const nameOf = (id: string) => storageKey(`product-draft-synced:${id}`);

function readSynced(id: string): Synced | null {
  try {
    return JSON.parse(localStorage.getItem(nameOf(id)) ?? "null") as Synced | null;
  } catch {
    return null;
  }
}
