/** The number of random interleavings of two tabs that edit one document. */
export const INTERLEAVINGS = Number(process.env["STOA_TEST_INTERLEAVINGS"] ?? 200);
