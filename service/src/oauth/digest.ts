import { createHash, timingSafeEqual } from "node:crypto";

// Hashed, not sealed: tokens and client secrets are only ever compared, and 256 random bits cannot be guessed.
export const digestOf = (value: string): Buffer => createHash("sha256").update(value).digest();

export const isSameDigest = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
