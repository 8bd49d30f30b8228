import type { Position } from "../../lib/workflow-document.ts";
import { storageKey } from "../../session.ts";

/** What a tab has not saved. Each tab has its own copy, so that no tab overwrites that of another. */
export interface LocalCopy {
  text: string;
  /** The saved text that it began with. */
  base: string;
  at: number;
}

const MAX_AGE_MS = 30 * 86_400_000;

const prefixOf = (productId: string) => storageKey(`workflow-${productId}-`);

/** Survives a reload of the tab. A duplicate of a tab begins with the same, and a write of either is newer. */
function tabId(): string {
  const key = storageKey("tab");
  try {
    const id = sessionStorage.getItem(key) ?? crypto.randomUUID();
    sessionStorage.setItem(key, id);
    return id;
  } catch {
    return "tab";
  }
}

export const ownCopyKey = (productId: string): string => prefixOf(productId) + tabId();

export function writeCopy(key: string, copy: LocalCopy): boolean {
  try {
    localStorage.setItem(key, JSON.stringify(copy));
    return true;
  } catch {
    return false;
  }
}

export function removeCopy(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // The browser forbids storage: nothing is there.
  }
}

/** That of this tab, else the newest of any tab; those that are saved or old are removed. */
export function findCopy(productId: string, saved: string): { key: string; copy: LocalCopy } | null {
  try {
    const prefix = prefixOf(productId);
    const found = Object.keys(localStorage)
      .filter((key) => key.startsWith(prefix))
      .map((key) => ({ key, copy: JSON.parse(localStorage.getItem(key) ?? "null") as LocalCopy }));
    const isOver = ({ text, at }: LocalCopy) => text === saved || Date.now() - at > MAX_AGE_MS;
    for (const { key, copy } of found) if (isOver(copy)) localStorage.removeItem(key);
    const open = found.filter(({ copy }) => !isOver(copy)).sort((a, b) => b.copy.at - a.copy.at);
    return open.find(({ key }) => key === ownCopyKey(productId)) ?? open[0] ?? null;
  } catch {
    return null;
  }
}

const positionsKey = (productId: string) => storageKey(`workflow-places-${productId}`);

/** A definition has no places for steps: they are of this browser. */
export function readPositions(productId: string): Record<string, Position> {
  try {
    return JSON.parse(localStorage.getItem(positionsKey(productId)) ?? "{}") as Record<string, Position>;
  } catch {
    return {};
  }
}

export function writePositions(productId: string, positions: Readonly<Record<string, Position>>): void {
  try {
    localStorage.setItem(positionsKey(productId), JSON.stringify(positions));
  } catch {
    // The layout is computed again.
  }
}
