/** What the service takes as a product's content. */
export const MOST_CHARACTERS = 200_000;
export const MOST_VARIABLES = 100;
/** Entries, and characters of each. */
export const MOST_ENTRIES = { tags: [20, 40], requirements: [50, 500], features: [50, 500] } as const;
