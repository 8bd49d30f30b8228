import { deferPackage } from "../../core/defer-package.ts";

const otplib = deferPackage<typeof import("otplib")>("otplib");
const uqr = deferPackage<typeof import("uqr")>("uqr");

const ISSUER = "Stoa";
/** A code is valid for its 30 seconds, 10 more for slow typing, and 5 before for a phone whose clock is ahead. */
const TOLERANCE_SECONDS: [past: number, future: number] = [10, 5];

/** 160 random bits, in base32. */
export const generateTotpSecret = (): string => otplib().generateSecret();

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code);

/** The time step of RFC 6238; null: the code is not valid now. */
export function findTimeStep(secret: string, code: string, now: Date): number | null {
  if (!isTotpCode(code)) return null;
  const verdict = otplib().verifySync({
    secret,
    token: code,
    epoch: Math.floor(now.getTime() / 1000),
    epochTolerance: TOLERANCE_SECONDS,
  });
  return verdict.valid && "timeStep" in verdict ? verdict.timeStep : null;
}

export const toOtpauthUri = (secret: string, email: string): string =>
  otplib().generateURI({ issuer: ISSUER, label: email, secret });

/** A data: URL, so that the page runs no foreign markup. */
export const renderQrCode = (uri: string): string =>
  `data:image/svg+xml;base64,${Buffer.from(uqr().renderSVG(uri, { ecc: "M", border: 4 })).toString("base64")}`;
