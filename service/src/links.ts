import { createHmac, timingSafeEqual } from "node:crypto";

/** Signed links: they work in a browser without a header, for a while, for one path. */
export interface Links {
  /** Where clients reach the service: scheme, host and port. */
  origin(): string;
  /** The full URL of `path` (below the origin), good until `expires`. */
  sign(path: string, expires: Date): string;
  /** Whether `signature` was made for exactly this path and time, and the time is not over. */
  isValid(path: string, query: { expires?: unknown; signature?: unknown }, now: Date): boolean;
}

/** The first secret signs, all of them verify. */
export function createLinks(origin: () => string, secrets: Buffer[]): Links {
  const signatureOf = (secret: Buffer, path: string, expires: number) =>
    createHmac("sha256", secret).update(`${expires}\n${path}`).digest();

  return {
    origin,
    sign(path, expires) {
      const seconds = Math.floor(expires.getTime() / 1000);
      const signature = signatureOf(secrets[0]!, path, seconds).toString("base64url");
      return `${origin()}${path}?expires=${seconds}&signature=${signature}`;
    },
    isValid(path, query, now) {
      if (typeof query.signature !== "string" || typeof query.expires !== "string") return false;
      if (!/^\d{1,12}$/.test(query.expires)) return false;
      const expires = Number(query.expires);
      const given = Buffer.from(query.signature, "base64url");
      const isSigned = secrets.some((secret) => {
        const expected = signatureOf(secret, path, expires);
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      return isSigned && expires * 1000 > now.getTime();
    },
  };
}
