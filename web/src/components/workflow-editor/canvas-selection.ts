import { createContext, useContext, useState, useSyncExternalStore } from "react";

interface MarkedSteps {
  /** null: no step is selected. */
  selected: string | null;
  /** The step with the tab stop of the canvas. */
  tabStop: string | null;
}

/**
 * The steps that the canvas marks. Each step reads its own mark: a mark in the nodes of the library would make all nodes and lines compare
 * themselves at each selection.
 */
export class CanvasSelection {
  #steps: MarkedSteps;
  readonly #listeners = new Set<() => void>();

  constructor(steps: MarkedSteps) {
    this.#steps = steps;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  isSelected(id: string): boolean {
    return id === this.#steps.selected;
  }

  hasTabStop(id: string): boolean {
    return id === this.#steps.tabStop;
  }

  set(steps: MarkedSteps): void {
    this.#steps = steps;
    for (const listener of this.#listeners) listener();
  }
}

const SelectionContext = createContext<CanvasSelection | null>(null);
export const CanvasSelectionProvider = SelectionContext.Provider;

export const useCanvasSelection = (steps: MarkedSteps): CanvasSelection =>
  useState(() => new CanvasSelection(steps))[0];

export function useStepMarks(id: string): { isSelected: boolean; hasTabStop: boolean } {
  const selection = useContext(SelectionContext);
  if (!selection) throw new Error("There is no canvas around this step");
  return {
    isSelected: useSyncExternalStore(selection.subscribe, () => selection.isSelected(id)),
    hasTabStop: useSyncExternalStore(selection.subscribe, () => selection.hasTabStop(id)),
  };
}
