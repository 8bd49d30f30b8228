/** What browsers and Vite say when a script or style of the client cannot be loaded. */
const MESSAGES = /dynamically imported module|Importing a module script failed|Unable to preload CSS/i;

export const isMissingFile = (error: unknown): boolean =>
  error instanceof Error && MESSAGES.test(error.message);
