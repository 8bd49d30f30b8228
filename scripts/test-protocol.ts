/** What the parent sends in place of a file when a worker is to end. */
export const NO_MORE = "";
