import type { Endpoint } from "@stoa/contract";
import { ApiError, invalidRequest } from "../errors.ts";

/** A body as it came, and the media type that it came as. */
export interface RawBody {
  type: string;
  bytes: Buffer;
}

/** Without parameters. */
export const mediaTypeOf = (contentType: string | undefined): string =>
  (contentType ?? "").split(";")[0]!.trim().toLowerCase();

/** What is in the bytes is the handler's to read. */
export function mustBeTaken({ types }: NonNullable<Endpoint["rawBody"]>, { type, bytes }: RawBody): void {
  if (bytes.length === 0) throw invalidRequest("body", "is required");
  if (!types.includes(type)) throw new ApiError("UNSUPPORTED_MEDIA_TYPE", `This takes ${types.join(", ")}.`);
}
