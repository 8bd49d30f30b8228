const SIGNATURE_BYTES = 8;
/** Length and type before the data, a checksum after it. */
const CHUNK_OVERHEAD_BYTES = 12;
const TEXT_CHUNKS = new Set(["tEXt", "zTXt", "iTXt"]);

/** Removes text chunks. libvips would decompress all of them before it reads the picture: one megabyte of them became four gigabytes. */
export function stripTextChunks(png: Buffer): Buffer {
  const chunks: Buffer[] = [];
  let from = 0;
  let at = SIGNATURE_BYTES;
  while (at + CHUNK_OVERHEAD_BYTES <= png.length) {
    const end = at + CHUNK_OVERHEAD_BYTES + png.readUInt32BE(at);
    if (TEXT_CHUNKS.has(png.toString("latin1", at + 4, at + 8))) {
      if (at > from) chunks.push(png.subarray(from, at));
      from = end;
    }
    at = end;
  }
  return from === 0 ? png : Buffer.concat([...chunks, png.subarray(from)]);
}
