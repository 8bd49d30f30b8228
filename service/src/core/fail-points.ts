import type { Context } from "./context.ts";

/** Ends the process or throws at a named place between two steps. */
export type FailPoints = (name: string) => void;

/** Does nothing outside of tests. */
export const failPoint = (ctx: Context, name: string): void => ctx.failPoints?.(name);
