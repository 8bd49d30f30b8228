/** Each describes something that is open when a test fails, such as a browser's page. The report of the failure has them. */
export const failureNotes = new Set<() => Promise<string>>();
