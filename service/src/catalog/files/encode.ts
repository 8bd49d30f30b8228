import { createHash } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import type { Sharp } from "sharp";
import { limitConcurrency } from "../../accounts/people/concurrency-limit.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { IMAGE_WIDTHS } from "../search/card.ts";
import { withoutTexts } from "./png.ts";
import { type Sniffed, sniffHead } from "./sniff.ts";

const MAX_PIXELS = 40_000_000;
const SECONDS = 20;
const QUALITY = 82;
const MAX_WIDTH = Math.max(...IMAGE_WIDTHS);
/** A strip that is taller would be a page of its own. */
const MAX_HEIGHT = 3 * MAX_WIDTH;
const HEAD_BYTES = 512;
const PICTURES: readonly Sniffed["family"][] = ["png", "jpeg", "webp", "gif", "avif"];

/** One decodes and one is ready: a picture takes a thread of the pool that files are read by too. */
const inTurn = limitConcurrency({ atOnce: 2, waiting: 50 });

interface EncodedImage {
  /** The digest of the widest: the image's name. */
  hash: string;
  width: number;
  height: number;
  /** By the widths under which they are asked for: what was smaller has stayed so. */
  renditions: { width: number; sha256: string; bytes: Buffer }[];
}

const refused = (reason: string) => invalidRequest("file", reason);

/** The picture and nothing else that the file held: turned upright, in sRGB, without metadata, as WebP in three widths. */
export async function encodeImage(upload: UploadedFile): Promise<EncodedImage> {
  const family = await familyOf(upload);
  return inTurn(async () => {
    try {
      return await encode(family === "png" ? withoutTexts(await readFile(upload.path)) : upload.path);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw refused(whyNot((error as Error).message));
    }
  });
}

async function familyOf({ path, size }: UploadedFile): Promise<Sniffed["family"]> {
  if (size === 0) throw refused("is empty");
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const sniffed = sniffHead(buffer.subarray(0, bytesRead));
    if (sniffed && PICTURES.includes(sniffed.family)) return sniffed.family;
    throw refused(`is ${sniffed?.what ?? "no picture"}: PNG, JPEG, WebP, GIF and AVIF are taken, SVG is not`);
  } finally {
    await file.close();
  }
}

/** libvips is loaded with the first picture; of its readers those stay that are needed. */
let loaded: Promise<typeof import("sharp").default> | null = null;
function loadSharp() {
  loaded ??= import("sharp").then(({ default: sharp }) => {
    sharp.cache(false);
    sharp.concurrency(1);
    sharp.block({ operation: ["VipsForeignLoad"] });
    sharp.unblock({
      operation: ["Png", "Jpeg", "Webp", "Nsgif", "Heif"].map((reader) => `VipsForeignLoad${reader}`),
    });
    return sharp;
  });
  return loaded;
}

/** Decoded once, at its widest; what is smaller is made from that. */
async function encode(picture: string | Buffer): Promise<EncodedImage> {
  const sharp = await loadSharp();
  const { data, info } = await sharp(picture, {
    limitInputPixels: MAX_PIXELS,
    failOn: "error",
    sequentialRead: true,
  })
    .autoOrient()
    .resize({ width: MAX_WIDTH, height: MAX_HEIGHT, fit: "inside", withoutEnlargement: true })
    .toColourspace("srgb")
    .timeout({ seconds: SECONDS })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const raw = { width: info.width, height: info.height, channels: info.channels };
  const renditions = [];
  for (const width of IMAGE_WIDTHS) {
    const bytes = await asWebp(sharp(data, { raw }), width);
    renditions.push({ width, sha256: createHash("sha256").update(bytes).digest("hex"), bytes });
  }
  return { hash: renditions.at(-1)!.sha256, width: info.width, height: info.height, renditions };
}

const asWebp = (picture: Sharp, width: number) =>
  picture
    .resize({ width, withoutEnlargement: true })
    .webp({ quality: QUALITY })
    .timeout({ seconds: SECONDS })
    .toBuffer();

/** libvips's words are for nobody. */
function whyNot(message: string): string {
  if (/pixel limit/i.test(message)) return `has more than ${MAX_PIXELS / 1_000_000} megapixels`;
  if (/timeout/i.test(message)) return `takes longer than ${SECONDS} seconds to read`;
  return "cannot be read as a picture: it is damaged, or cut off";
}
