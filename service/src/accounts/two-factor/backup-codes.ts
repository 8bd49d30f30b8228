import { randomBytes } from "node:crypto";
import { digestOf } from "../../core/digest.ts";

const CODES = 10;
const LETTERS = 25;
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** 125 random bits in five groups of five, so that a person can copy them from paper. */
function generateBackupCode(): string {
  const letters = Array.from(randomBytes(LETTERS), (byte) => BASE32[byte % BASE32.length]).join("");
  return letters.match(/.{5}/g)!.join("-");
}

export const generateBackupCodes = (): string[] => Array.from({ length: CODES }, generateBackupCode);

const normalizeCode = (code: string) => code.replace(/[\s-]/g, "").toUpperCase();

export const digestBackupCode = (code: string): Buffer => digestOf(normalizeCode(code));
