import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Loads a package at the first call. Without a promise, so that synchronous functions can use it (docs/decisions/0086-packages-at-first-use.md). */
export function deferPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= require(name) as T);
}
