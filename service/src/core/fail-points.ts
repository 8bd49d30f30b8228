import type { Context } from "./context.ts";

/** Tests end the process, or throw, at a named place between two steps. */
export type FailPoints = (name: string) => void;

/** Names a place where a process may die, so that a test can end it there. Outside of tests it does nothing. */
export const failPoint = (ctx: Context, name: string): void => ctx.failPoints?.(name);
