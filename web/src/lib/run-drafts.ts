import { storageKey } from "../session.ts";

/** What was typed into the form of a product, so that loading the page anew keeps it. Only in this tab. */

const nameOf = (productId: string) => storageKey(`run-draft:${productId}`);

export function readDraft<T>(productId: string): T | null {
  try {
    return JSON.parse(sessionStorage.getItem(nameOf(productId)) ?? "null") as T | null;
  } catch {
    return null;
  }
}

export function writeDraft(productId: string, draft: object): void {
  try {
    sessionStorage.setItem(nameOf(productId), JSON.stringify(draft));
  } catch {
    // Full, or forbidden by the browser: then a reload starts with the defaults.
  }
}
