import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { negotiate } from "@fastify/accept-negotiator";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isCurrent } from "./conditional.ts";

type Encoding = "br" | "gzip";
/** Below this, compression saves no packets. */
const MIN_BYTES = 1_024;
/** Higher qualities take seconds for a few percent. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };

const compressors: Record<Encoding, (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** Immutable bytes, compressed once for each encoding. */
export class StaticContent {
  readonly bytes: Buffer;
  readonly type: string;
  readonly #digest: string;
  readonly #encoded = new Map<Encoding, Promise<Buffer>>();

  /** `compressed`: made ahead, so that the first request does not wait for it. */
  constructor(
    content: Buffer | string,
    type: string,
    compressed: { br?: Buffer | undefined; gzip?: Buffer | undefined } = {},
  ) {
    this.bytes = Buffer.from(content);
    this.type = type;
    for (const encoding of ["br", "gzip"] as const) {
      const bytes = compressed[encoding];
      if (bytes) this.#encoded.set(encoding, Promise.resolve(bytes));
    }
    this.#digest = createHash("sha256").update(this.bytes).digest("base64url").slice(0, 27);
  }

  /** One for each encoding: a cache must not mix them. */
  etag(encoding: Encoding | null): string {
    return `"${this.#digest}${encoding ? `-${encoding}` : ""}"`;
  }

  encoded(encoding: Encoding): Promise<Buffer> {
    const known = this.#encoded.get(encoding);
    if (known !== undefined) return known;
    const made = compressors[encoding](this.bytes);
    this.#encoded.set(encoding, made);
    // The next request tries again.
    made.catch(() => this.#encoded.delete(encoding));
    return made;
  }
}

/** null: uncompressed. */
function encodingFor({ headers }: FastifyRequest, { bytes }: StaticContent): Encoding | null {
  const accepted = headers["accept-encoding"];
  if (typeof accepted !== "string" || bytes.length < MIN_BYTES) return null;
  const negotiated = negotiate(accepted, ["br", "gzip", "identity"]);
  return negotiated === "identity" ? null : negotiated;
}

export async function sendStatic(
  request: FastifyRequest,
  reply: FastifyReply,
  content: StaticContent,
  cacheControl = "no-cache",
): Promise<FastifyReply> {
  const encoding = encodingFor(request, content);
  const etag = content.etag(encoding);
  reply.headers({ etag, "cache-control": cacheControl, vary: "Accept-Encoding" });
  if (isCurrent(request, etag)) return reply.code(304).send();
  if (encoding) reply.header("content-encoding", encoding);
  return reply.type(content.type).send(encoding ? await content.encoded(encoding) : content.bytes);
}
