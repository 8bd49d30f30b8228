import { hash, timingSafeEqual } from "node:crypto";

// Hashed, not sealed, and by no slow hash: these secrets are random and only ever compared, often on every request.
export const digestOf = (value: string | Buffer): Buffer => hash("sha256", value, "buffer");

export const isSameDigest = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
