import { hash, timingSafeEqual } from "node:crypto";

// A fast hash: these secrets are random, so nobody can guess them, and requests compare them all the time.
export const digestOf = (value: string | Buffer): Buffer => hash("sha256", value, "buffer");

export const isSameDigest = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
