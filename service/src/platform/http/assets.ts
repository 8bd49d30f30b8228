import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { StaticContent, sendStatic } from "./static-content.ts";

const FOLDER = new URL("./assets/", import.meta.url);
const TYPES: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};
const YEAR_SECONDS = 31_536_000;

const digestOf = (text: string | Buffer) =>
  createHash("sha256").update(text).digest("base64url").slice(0, 16);

/** Read at the start: the folder has a few kilobytes. */
const assets: ReadonlyMap<string, StaticContent> = new Map([
  ...readdirSync(FOLDER).sort().map(readAsset),
  ["inter.woff2", readFont()],
]);

/** The font of the web client, in Latin letters. */
function readFont(): StaticContent {
  const path = createRequire(import.meta.url).resolve(
    "@fontsource-variable/inter/files/inter-latin-opsz-normal.woff2",
  );
  return new StaticContent(readFileSync(path), "font/woff2");
}

function readAsset(name: string): [string, StaticContent] {
  return [
    name,
    new StaticContent(
      readFileSync(new URL(name, FOLDER)),
      required(TYPES[extname(name)], `the type of ${name}`),
    ),
  ];
}

/** One digest of all files: modules import each other by relative paths and must be of one version. */
const edition = digestOf([...assets].map(([name, content]) => name + content.etag(null)).join());

/** The immutable path for pages, which contains the digest. */
export function assetPath(name: string): string {
  if (!assets.has(name)) throw new TypeError(`there is no ${name} below http/assets`);
  return `/assets/${edition}/${name}`;
}

/** During a deployment a page may request another node's version: the answer has our bytes and is not cached. */
export function addAssets(app: FastifyInstance): void {
  app.get("/assets/:name", (request, reply) => sendAsset(request, reply, "no-cache"));
  app.get("/assets/:edition/:name", (request, reply) => {
    const isOurs = (request.params as { edition: string }).edition === edition;
    return sendAsset(request, reply, isOurs ? `public, max-age=${YEAR_SECONDS}, immutable` : "no-cache");
  });
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, caching: string) {
  const asset = assets.get((request.params as { name: string }).name);
  if (!asset) throw new ApiError("NOT_FOUND");
  return sendStatic(request, reply, asset, caching);
}
