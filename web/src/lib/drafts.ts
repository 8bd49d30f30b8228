import { storageKey } from "../session.ts";

const MAX_AGE_MS = 3_600_000;

/**
 * Text of a form while its author signs in again, which may happen in another tab: an emailed link opens one. Never for secrets.
 */
export function saveDraft(name: string, value: unknown): void {
  try {
    localStorage.setItem(keyOf(name), JSON.stringify({ savedAt: Date.now(), value }));
  } catch {
    // Without storage the text is lost with the page.
  }
}

/** Whether the text is kept, so that the page may be left. */
export function hasDraft(name: string): boolean {
  try {
    return localStorage.getItem(keyOf(name)) !== null;
  } catch {
    return false;
  }
}

/** The draft of the last hour, once. */
export function takeDraft<T>(name: string): T | null {
  try {
    const text = localStorage.getItem(keyOf(name));
    localStorage.removeItem(keyOf(name));
    const { savedAt, value } = JSON.parse(text ?? "null") as { savedAt: number; value: T };
    return Date.now() - savedAt < MAX_AGE_MS ? value : null;
  } catch {
    return null;
  }
}

const keyOf = (name: string): string => storageKey(`draft-${name}`);
