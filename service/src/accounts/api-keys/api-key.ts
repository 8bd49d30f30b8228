import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Environment } from "../../core/config/config.ts";
import { digestOf } from "../../core/digest.ts";

/** `stoa_<live|test>_<lookup 12><secret 32><crc 6>`, base62: one regex finds leaked ones, a double click selects it. */
const KEY_PATTERN = /^stoa_(live|test)_([0-9A-Za-z]{12})([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const toKeyLabel = (environment: Environment) => (environment === "production" ? "live" : "test");
const randomBase62 = (length: number) => Array.from({ length }, () => BASE62[randomInt(62)]).join("");

/** Drops typos and scanners' noise before the database is asked. It guards nothing. */
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
  /** The whole key: shown once. */
  value: string;
  lookup: string;
  digest: Buffer;
}

/** How a key begins: what its owner recognises it by. */
export const toKeyPrefix = (environment: Environment, lookup: string) =>
  `stoa_${toKeyLabel(environment)}_${lookup}`;

export function mintKey(environment: Environment): MintedKey {
  const lookup = randomBase62(12);
  const body = toKeyPrefix(environment, lookup) + randomBase62(32);
  const value = body + checksum(body);
  return { value, lookup, digest: digestOf(value) };
}

/** The twelve characters to look a key up by; null when it cannot be one of this environment's. */
export function parseKeyLookup(value: string, environment: Environment): string | null {
  const [, label, lookup, , crc] = KEY_PATTERN.exec(value) ?? [];
  if (!lookup || label !== toKeyLabel(environment)) return null;
  return checksum(value.slice(0, -6)) === crc ? lookup : null;
}
