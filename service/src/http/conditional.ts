import { ApiError } from "../errors.ts";

/** If-Match of a PATCH: the caller's change was made from this state, or from one that is gone (412). */
export function mustMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null || ifMatch.trim() === "*") return;
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  if (!tags.includes(etag)) throw new ApiError("PRECONDITION_FAILED");
}
