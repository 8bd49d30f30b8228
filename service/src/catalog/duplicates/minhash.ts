import { shinglesOf } from "./text-similarity.ts";

/**
 * MinHash signatures with bands for locality-sensitive hashing (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, chapter 3). Two
 * texts with Jaccard index s share a band with probability 1 - (1 - s^6)^20: 0.998 at 0.8, 0.27 at 0.5 and 0.015 at 0.3.
 */
const BANDS = 20;
const ROWS = 6;
const HASHES = BANDS * ROWS;

export interface Fingerprint {
  /** Hashes of the bands, as signed 32-bit integers; none for a text without words. */
  bands: number[];
  /** One byte of each minimum: enough to estimate the similarity. */
  signature: Buffer;
}

export function createFingerprint(text: string): Fingerprint {
  const minima = minimaOf(shinglesOf(text));
  if (!minima) return { bands: [], signature: Buffer.alloc(0) };
  const bands = Array.from({ length: BANDS }, (_, band) =>
    minima.subarray(band * ROWS, (band + 1) * ROWS).reduce((hash, row) => mix(hash ^ row), mix(band)),
  );
  return { bands: bands.map((band) => band | 0), signature: Buffer.from(Uint8Array.from(minima)) };
}

/** Estimates the Jaccard index. One of 256 bytes is equal by chance. */
export function estimateSimilarity(a: Buffer, b: Buffer): number {
  if (a.length === 0 || a.length !== b.length) return 0;
  const equal = a.reduce((count, byte, at) => count + (byte === b[at] ? 1 : 0), 0);
  return Math.max(0, (equal / a.length - 1 / 256) / (1 - 1 / 256));
}

function minimaOf(shingles: Set<string>): Uint32Array | null {
  if (shingles.size === 0) return null;
  const hashes = Uint32Array.from([...shingles], hashText);
  return SEEDS.map((seed) => leastMixed(hashes, seed));
}

/** A loop, because `reduce` takes three times as long. */
function leastMixed(hashes: Uint32Array, seed: number): number {
  let least = 0xffffffff;
  for (let at = 0; at < hashes.length; at++) {
    const mixed = mix((hashes[at] as number) ^ seed);
    if (mixed < least) least = mixed;
  }
  return least;
}

/** FNV-1a, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** The finalizer of MurmurHash3: a permutation of 32 bits. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

// Stored signatures depend on them.
const SEEDS = Uint32Array.from({ length: HASHES }, (_, nth) => mix(Math.imul(nth + 1, 0x9e3779b9)));
