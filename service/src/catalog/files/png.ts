const SIGNATURE_BYTES = 8;
/** A length and a type, and behind the data a checksum. */
const CHUNK_OVERHEAD_BYTES = 12;
const TEXT_CHUNKS = new Set(["tEXt", "zTXt", "iTXt"]);

/**
 * A PNG without its texts. Each may be packed a thousandfold, there may be thousands, and libvips would unpack them all
 * before it looks at the picture: a megabyte made four gigabytes.
 */
export function stripTextChunks(png: Buffer): Buffer {
  const kept: Buffer[] = [];
  let from = 0;
  let at = SIGNATURE_BYTES;
  while (at + CHUNK_OVERHEAD_BYTES <= png.length) {
    const end = at + CHUNK_OVERHEAD_BYTES + png.readUInt32BE(at);
    if (TEXT_CHUNKS.has(png.toString("latin1", at + 4, at + 8))) {
      if (at > from) kept.push(png.subarray(from, at));
      from = end;
    }
    at = end;
  }
  return from === 0 ? png : Buffer.concat([...kept, png.subarray(from)]);
}
