import { createSigner } from "./signature.ts";

/** Signed links open one path in a browser without an Authorization header, for a limited time. */
export interface Links {
  origin(): string;
  sign(path: string, expires: Date): string;
  /** Returns false after the expiry. */
  isValid(path: string, query: { expires?: unknown; signature?: unknown }, now: Date): boolean;
}

export function createLinks(origin: () => string, secrets: Buffer[]): Links {
  const signer = createSigner(secrets);
  return {
    origin,
    sign(path, expires) {
      const seconds = Math.floor(expires.getTime() / 1000);
      return `${origin()}${path}?expires=${seconds}&signature=${signer.sign(`${seconds}\n${path}`)}`;
    },
    isValid(path, query, now) {
      if (typeof query.signature !== "string" || typeof query.expires !== "string") return false;
      if (!/^\d{1,12}$/.test(query.expires)) return false;
      const expires = Number(query.expires);
      return signer.verify(`${expires}\n${path}`, query.signature) && expires * 1000 > now.getTime();
    },
  };
}

/** Links of the same quarter of an hour are equal, so that responses with links keep their ETag. */
const ROUNDED_TO_MS = 15 * 60_000;

export const linkExpiry = (now: Date, leastMinutes: number): Date =>
  new Date(Math.ceil((now.getTime() + leastMinutes * 60_000) / ROUNDED_TO_MS) * ROUNDED_TO_MS);

/** Long enough for a person to click, short enough that a leaked link soon expires. GET issues new ones. */
export const DOWNLOAD_LINK_MINUTES = 60;
