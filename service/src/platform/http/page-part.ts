import { AsyncLocalStorage } from "node:async_hooks";

const storage = new AsyncLocalStorage<true>();

/**
 * Runs requests that the service sends to itself for a page that counted in the caller's quota already. They are not marked by a header,
 * because a client could send that one too.
 */
export const runAsPagePart = <T>(work: () => Promise<T>): Promise<T> => storage.run(true, work);

export const isPagePart = (): boolean => storage.getStore() === true;
