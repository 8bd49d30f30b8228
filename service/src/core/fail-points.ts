import type { Context } from "./context.ts";

/** What tests do at a named place between two steps: they end the process, or throw. */
export type FailPoints = (name: string) => void;

/** A place at which a process may die, named so that tests can let it: what it leaves behind must be repaired. In truth nothing is done here. */
export const failPoint = (ctx: Context, name: string): void => ctx.failPoints?.(name);
