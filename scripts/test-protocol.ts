/** Sent instead of a file when a worker must end. */
export const NO_MORE = "";
