import { createHash } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import type { Sharp } from "sharp";
import { limitConcurrency } from "../../accounts/people/concurrency-limit.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { lastOf } from "../../core/required.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { IMAGE_WIDTHS } from "../search/card.ts";
import { type DetectedType, detectType } from "./file-type-check.ts";
import { stripTextChunks } from "./png.ts";

const MAX_PIXELS = 40_000_000;
const TIMEOUT_SECONDS = 20;
const QUALITY = 82;
const MAX_WIDTH = Math.max(...IMAGE_WIDTHS);
/** Limits long strips, such as a screenshot of a whole page. */
const MAX_HEIGHT = 3 * MAX_WIDTH;
const AVATAR_SIZE = 512;
const HEAD_BYTES = 512;
const IMAGE_FAMILIES: readonly DetectedType["family"][] = ["png", "jpeg", "webp", "gif", "avif"];

/** Decoding uses a thread of the pool that also reads files, hence two at once. */
const withConcurrencyLimit = limitConcurrency({ atOnce: 2, waiting: 50 });

interface EncodedImage {
  /** The digest of the widest rendition is the image's name. */
  hash: string;
  width: number;
  height: number;
  /** By requested width. A smaller picture keeps its own width. */
  renditions: { width: number; sha256: string; bytes: Buffer }[];
}

interface EncodedAvatar {
  hash: string;
  bytes: Buffer;
}

const invalidFile = (reason: string) => invalidRequest("file", reason);

/** Re-encodes the picture as WebP in three widths: upright, in sRGB, without metadata. */
export const encodeImage = (upload: UploadedFile): Promise<EncodedImage> => reencode(upload, toRenditions);

/** Re-encodes the picture as one small WebP: upright, in sRGB, without metadata. */
export const encodeAvatar = (upload: UploadedFile): Promise<EncodedAvatar> => reencode(upload, toAvatar);

/** What link previews show: 1200 × 630, as https://developers.facebook.com/docs/sharing/webmasters/images asks for. */
const PREVIEW = { width: 1_200, height: 630 };
/** Of drawings that are 320 pixels wide at 72 dots per inch. */
const PREVIEW_DENSITY = (72 * PREVIEW.width) / 320;

/** Apart from uploads, which a flood of previews would keep waiting. */
const withPreviewLimit = limitConcurrency({ atOnce: 1, waiting: 10 });

/** Paints a generated cover as PNG for link previews, which take no SVG. Some 80 ms of CPU. */
export const paintPreview = (svg: string): Promise<Buffer> =>
  withPreviewLimit(async () => {
    const sharp = await loadSharp();
    return sharp(Buffer.from(svg), { density: PREVIEW_DENSITY })
      .resize({ ...PREVIEW, fit: "cover" })
      .png({ palette: true })
      .timeout({ seconds: TIMEOUT_SECONDS })
      .toBuffer();
  });

type Picture = string | Buffer;

async function reencode<T>(upload: UploadedFile, encode: (picture: Picture) => Promise<T>): Promise<T> {
  const family = await detectFamily(upload);
  return withConcurrencyLimit(async () => {
    try {
      return await encode(family === "png" ? stripTextChunks(await readFile(upload.path)) : upload.path);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw invalidFile(describeSharpError((error as Error).message));
    }
  });
}

async function detectFamily({ path, size }: UploadedFile): Promise<DetectedType["family"]> {
  if (size === 0) throw invalidFile("is empty");
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const sniffed = detectType(buffer.subarray(0, bytesRead));
    if (sniffed && IMAGE_FAMILIES.includes(sniffed.family)) return sniffed.family;
    throw invalidFile(
      `is ${sniffed?.what ?? "no picture"}: PNG, JPEG, WebP, GIF and AVIF are accepted, SVG is not`,
    );
  } finally {
    await file.close();
  }
}

/** Loads libvips with the first picture, and only the decoders that are needed. */
let sharpModule: Promise<typeof import("sharp").default> | null = null;
function loadSharp() {
  sharpModule ??= import("sharp").then(({ default: sharp }) => {
    sharp.cache(false);
    sharp.concurrency(1);
    sharp.block({ operation: ["VipsForeignLoad"] });
    sharp.unblock({
      // Drawings of our own are read from memory. Uploads are read from files, and as PNG from memory.
      operation: ["Png", "Jpeg", "Webp", "Nsgif", "Heif", "SvgBuffer"].map(
        (reader) => `VipsForeignLoad${reader}`,
      ),
    });
    return sharp;
  });
  return sharpModule;
}

/** Upright and in sRGB, within these bounds. */
async function decode(picture: Picture, bounds: { width: number; height: number }): Promise<Sharp> {
  const sharp = await loadSharp();
  return sharp(picture, { limitInputPixels: MAX_PIXELS, failOn: "error", sequentialRead: true })
    .autoOrient()
    .resize({ ...bounds, fit: "inside", withoutEnlargement: true })
    .toColourspace("srgb")
    .timeout({ seconds: TIMEOUT_SECONDS });
}

const sha256Of = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function toAvatar(picture: Picture): Promise<EncodedAvatar> {
  const decoded = await decode(picture, { width: AVATAR_SIZE, height: AVATAR_SIZE });
  const bytes = await decoded.webp({ quality: QUALITY }).toBuffer();
  return { hash: sha256Of(bytes), bytes };
}

/** Decodes once at the widest size and scales the others down from it. */
async function toRenditions(picture: Picture): Promise<EncodedImage> {
  const sharp = await loadSharp();
  const decoded = await decode(picture, { width: MAX_WIDTH, height: MAX_HEIGHT });
  const { data, info } = await decoded.raw().toBuffer({ resolveWithObject: true });
  const raw = { width: info.width, height: info.height, channels: info.channels };
  const renditions = [];
  for (const width of IMAGE_WIDTHS) {
    const bytes = await toWebp(sharp(data, { raw }), width);
    renditions.push({ width, sha256: sha256Of(bytes), bytes });
  }
  return { hash: lastOf(renditions).sha256, width: info.width, height: info.height, renditions };
}

const toWebp = (picture: Sharp, width: number) =>
  picture
    .resize({ width, withoutEnlargement: true })
    .webp({ quality: QUALITY })
    .timeout({ seconds: TIMEOUT_SECONDS })
    .toBuffer();

/** Replaces libvips' error texts, which are not meant for users. */
function describeSharpError(message: string): string {
  if (/pixel limit/i.test(message)) return `has more than ${MAX_PIXELS / 1_000_000} megapixels`;
  if (/timeout/i.test(message)) return `takes longer than ${TIMEOUT_SECONDS} seconds to read`;
  return "cannot be read as a picture: it is damaged, or cut off";
}
