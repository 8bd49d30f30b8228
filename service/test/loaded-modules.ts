import { registerHooks } from "node:module";

/** The URLs of all modules that are loaded from the import of this file on. What a test watches must be imported by `import()`, later. */
export const loadedModules: string[] = [];

registerHooks({
  load(url, context, next) {
    loadedModules.push(url);
    return next(url, context);
  },
});
