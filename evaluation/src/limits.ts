/** Of a file with a test set: the parsers need seconds for larger ones. */
export const MAX_FILE_CHARACTERS = 500_000;
