import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Environment } from "../../core/config/config.ts";
import { digestOf } from "../../core/digest.ts";

/** `stoa_<live|test>_<lookup 12><secret 32><crc 6>`, base62: one regex finds leaked ones, a double click selects it. */
const KEY_PATTERN = /^stoa_(live|test)_([0-9A-Za-z]{12})([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const toKeyLabel = (environment: Environment) => (environment === "production" ? "live" : "test");
const randomBase62 = (length: number) => Array.from({ length }, () => BASE62[randomInt(62)]).join("");

/** Rejects typos and scanners' noise without a query. It is no protection. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let at = 0; at < 6; at++) {
    digits = BASE62[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

export interface MintedKey {
  /** The whole key, which is shown once. */
  value: string;
  lookup: string;
  digest: Buffer;
}

/** The part of a key that the database and the owner may see. */
export const toKeyPrefix = (environment: Environment, lookup: string) =>
  `stoa_${toKeyLabel(environment)}_${lookup}`;

export function mintKey(environment: Environment): MintedKey {
  const lookup = randomBase62(12);
  const body = toKeyPrefix(environment, lookup) + randomBase62(32);
  const value = body + checksum(body);
  return { value, lookup, digest: digestOf(value) };
}

/** null: the value cannot be a key of this environment. */
export function parseKeyLookup(value: string, environment: Environment): string | null {
  const [, label, lookup, , crc] = KEY_PATTERN.exec(value) ?? [];
  if (!lookup || label !== toKeyLabel(environment)) return null;
  return checksum(value.slice(0, -6)) === crc ? lookup : null;
}
