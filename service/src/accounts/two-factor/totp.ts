import { generateSecret, generateURI, verifySync } from "otplib";
import { renderSVG } from "uqr";

const ISSUER = "Stoa";
/** A code lives for its 30 seconds, 10 more for slow fingers, and 5 before for a phone whose clock is ahead. */
const TOLERANCE_SECONDS: [past: number, future: number] = [10, 5];

/** 160 random bits, in base32. */
export const generateTotpSecret = (): string => generateSecret();

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code);

/** The time step (RFC 6238) whose code this is; null when it is none that counts now. */
export function findTimeStep(secret: string, code: string, now: Date): number | null {
  if (!isTotpCode(code)) return null;
  const verdict = verifySync({
    secret,
    token: code,
    epoch: Math.floor(now.getTime() / 1000),
    epochTolerance: TOLERANCE_SECONDS,
  });
  return verdict.valid && "timeStep" in verdict ? verdict.timeStep : null;
}

export const toOtpauthUri = (secret: string, email: string): string =>
  generateURI({ issuer: ISSUER, label: email, secret });

/** As a data: URL, which a page shows without running or trusting markup. */
export const renderQrCode = (uri: string): string =>
  `data:image/svg+xml;base64,${Buffer.from(renderSVG(uri, { ecc: "M", border: 4 })).toString("base64")}`;
