import { hash, timingSafeEqual } from "node:crypto";

// A fast hash is enough: the secrets are random, and every request compares one.
export const digestOf = (value: string | Buffer): Buffer => hash("sha256", value, "buffer");

export const isSameDigest = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
