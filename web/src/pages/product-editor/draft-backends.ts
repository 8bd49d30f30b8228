import type { ProductDetail } from "@stoa/sdk";
import { stoa } from "../../api.ts";
import { statusOf } from "../../lib/errors.ts";
import { storageKey } from "../../session.ts";
import { type Draft, type DraftField, toDraft, toUpdate } from "./draft-fields.ts";

export interface Snapshot {
  draft: Draft;
  /** Changes with every change of the draft. */
  tag: string;
}

/** Another tab, device or client has changed the draft since its tag. */
export class StaleDraft extends Error {}

export interface DraftBackend {
  isLocal: boolean;
  load(): Promise<Snapshot>;
  save(draft: Draft, fields: DraftField[], tag: string): Promise<Snapshot>;
}

export interface LoadedProduct {
  product: ProductDetail;
  etag: string;
}

export async function loadProduct(id: string, signal?: AbortSignal): Promise<LoadedProduct> {
  const { data, headers } = await stoa.products.get(id, {}, signal ? { signal } : {}).withResponse();
  return { product: data, etag: headers.get("etag") ?? "" };
}

export async function patchProduct(
  id: string,
  update: ReturnType<typeof toUpdate>,
  etag: string,
): Promise<LoadedProduct> {
  try {
    const { data, headers } = await stoa.products
      .update(id, update, { headers: { "if-match": etag } })
      .withResponse();
    return { product: data, etag: headers.get("etag") ?? "" };
  } catch (error) {
    if (statusOf(error) === 412) throw new StaleDraft();
    throw error;
  }
}

/** A product that was never on sale: each change is stored in it. */
export const serverBackend = (id: string, onProduct: (loaded: LoadedProduct) => void): DraftBackend => ({
  isLocal: false,
  load: async () => toSnapshot(await loadProduct(id), onProduct),
  save: async (draft, fields, tag) =>
    toSnapshot(await patchProduct(id, toUpdate(draft, fields), tag), onProduct),
});

function toSnapshot(loaded: LoadedProduct, onProduct: (loaded: LoadedProduct) => void): Snapshot {
  onProduct(loaded);
  return { draft: toDraft(loaded.product), tag: loaded.etag };
}

/** Changes of a product that was on sale, with the state that they began with. */
export interface LocalChanges {
  tag: string;
  draft: Draft;
  origin: Snapshot;
}

const nameOf = (id: string) => storageKey(`product-draft:${id}`);

export function readLocalChanges(id: string): LocalChanges | null {
  try {
    return JSON.parse(localStorage.getItem(nameOf(id)) ?? "null") as LocalChanges | null;
  } catch {
    return null;
  }
}

export const writeLocalChanges = (id: string, changes: LocalChanges): void =>
  localStorage.setItem(nameOf(id), JSON.stringify(changes));

/** The changes are now those to another state of the product. */
export function moveOrigin(id: string, origin: Snapshot): void {
  const stored = readLocalChanges(id);
  if (stored) writeLocalChanges(id, { ...stored, origin });
}

export const removeLocalChanges = (id: string): void => localStorage.removeItem(nameOf(id));

/** Calls back when another tab of this browser stored changes. */
export function onLocalChanges(id: string, callback: () => void): () => void {
  const listen = ({ key }: StorageEvent) => key === nameOf(id) && callback();
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}

const NO_CHANGES = "none";

/**
 * A product that was on sale: a change of its content would be sold at once. The changes wait in this browser until they are published,
 * in one place for all its tabs. The mirror carries them to other devices.
 */
export function localBackend(id: string, origin: () => Snapshot): DraftBackend {
  const read = (): Snapshot => {
    const stored = readLocalChanges(id);
    return stored ? { draft: stored.draft, tag: stored.tag } : { draft: origin().draft, tag: NO_CHANGES };
  };
  return {
    isLocal: true,
    load: async () => read(),
    save: async (draft, _, tag) => {
      const write = () => {
        if (read().tag !== tag) throw new StaleDraft();
        const next = { draft, tag: crypto.randomUUID() };
        const began = readLocalChanges(id)?.origin ?? origin();
        writeLocalChanges(id, { ...next, origin: began });
        return next;
      };
      // Two tabs must not write between the check and the write of each other. Only secure origins have locks.
      return isSecureContext ? navigator.locks.request(nameOf(id), write) : write();
    },
  };
}
