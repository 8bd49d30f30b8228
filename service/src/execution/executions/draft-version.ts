/** Ends the version of a run whose definition was not that of the version. No semantic version of a product ends so. */
const DRAFT = "-draft";

export const toDraftVersion = (version: string): string => version + DRAFT;

export const isDraftVersion = (version: string): boolean => version.endsWith(DRAFT);
