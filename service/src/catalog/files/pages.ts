import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { isCurrent } from "../../platform/http/conditional.ts";
import { IMAGE_WIDTHS } from "../search/card.ts";
import { avatarKey, imageKey, readBlob } from "./blobs.ts";
import { type FileLink, findLinkedFile, openFile, parseRange } from "./download.ts";
import { contentDisposition } from "./file-name.ts";
import { findAvatar, findBlob, findImage } from "./queries.ts";

const YEAR_SECONDS = 31_536_000;
const IMAGE_NAME = new RegExp(`^([0-9a-f]{64})-(${IMAGE_WIDTHS.join("|")})\\.webp$`);
const AVATAR_NAME = /^([0-9a-f]{64})\.webp$/;
/** A browser downloads the file. If a browser displayed it, this policy would stop its scripts. */
const SANDBOX_POLICY = "sandbox; default-src 'none'";

/** Fastify keeps the content-length of a HEAD response only for a stream. */
const emptyStream = () => Readable.from([]);

/** URLs without an Authorization header: signed links for buyers, and public images. */
export function addFilePages(app: FastifyInstance, ctx: Context): void {
  app.get("/v1/products/:productId/files/:fileId/download/:readerId", (request, reply) =>
    sendFile(ctx, request, reply),
  );
  app.get("/images/:name", (request, reply) => sendImage(ctx, request, reply));
  app.get("/avatars/:name", (request, reply) => sendAvatar(ctx, request, reply));
}

async function sendFile(ctx: Context, request: FastifyRequest, reply: FastifyReply) {
  const linked = request.params as FileLink;
  const found = await findLinkedFile(ctx, linked, request.query as Record<string, unknown>);
  const { file } = found;
  const range = parseRange(request.headers.range, file.size);
  reply.headers({
    "content-disposition": contentDisposition(file.name),
    "content-security-policy": SANDBOX_POLICY,
    "cache-control": "private, no-store",
    "accept-ranges": "bytes",
  });
  if (range === null) return reply.code(416).header("content-range", `bytes */${file.size}`).send();
  const length = range ? range.end - range.start + 1 : file.size;
  if (range) reply.code(206).header("content-range", `bytes ${range.start}-${range.end}/${file.size}`);
  const charset = file.type.startsWith("text/") ? "; charset=utf-8" : "";
  reply.type(file.type + charset).header("content-length", length);
  return reply.send(request.method === "HEAD" ? emptyStream() : await openFile(ctx, linked, found, range));
}

async function sendImage(ctx: Context, request: FastifyRequest, reply: FastifyReply) {
  const { name } = request.params as { name: string };
  const [, hash, width] = IMAGE_NAME.exec(name) ?? [];
  if (!hash) throw new ApiError("NOT_FOUND");
  // Moderators get signed links to images that no product shows.
  const isSigned = ctx.links.isValid(`/images/${name}`, request.query as Record<string, unknown>, ctx.now());
  const key = imageKey(hash, Number(width));
  const blob = isSigned ? await findBlob(ctx.db, key) : await findImage(ctx.db, hash, key);
  if (!blob) throw new ApiError("NOT_FOUND");
  const etag = `"${name.slice(0, 32)}-${width}"`;
  return sendPicture(ctx, request, reply, { ...blob, etag, isPublic: !isSigned });
}

async function sendAvatar(ctx: Context, request: FastifyRequest, reply: FastifyReply) {
  const { name } = request.params as { name: string };
  const [, hash] = AVATAR_NAME.exec(name) ?? [];
  const blob = hash && (await findAvatar(ctx.db, hash, avatarKey(hash)));
  if (!blob) throw new ApiError("NOT_FOUND");
  return sendPicture(ctx, request, reply, { ...blob, etag: `"${hash.slice(0, 32)}"`, isPublic: true });
}

async function sendPicture(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, name, size, isPublic }: { etag: string; name: string; size: number; isPublic: boolean },
) {
  reply.headers({
    etag,
    "cache-control": isPublic ? `public, max-age=${YEAR_SECONDS}, immutable` : "private, no-store",
    // Other sites may embed a public image.
    "cross-origin-resource-policy": isPublic ? "cross-origin" : "same-origin",
  });
  if (isCurrent(request, etag)) return reply.code(304).send();
  reply.type("image/webp").header("content-length", size);
  return reply.send(request.method === "HEAD" ? emptyStream() : await readBlob(ctx, name));
}
