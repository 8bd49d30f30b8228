import type { Access } from "@stoa/contract";
import type { Caller } from "../context.ts";
import { ApiError, invalidRequest } from "../errors.ts";

/** Who a credential belongs to; null when it is unknown, revoked, expired or of another environment. */
export interface Identify {
  key(value: string): Promise<Caller | null>;
}

export interface Presented {
  authorization: string | undefined;
  apiKeyInQuery: unknown;
}

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/i;
const refused = () => new ApiError("INVALID_API_KEY");

/** One credential out of what was sent. The header wins; two that differ are a mistake to tell, not to guess about. */
function credentialOf({ authorization, apiKeyInQuery }: Presented): string {
  const inHeader = authorization === undefined ? null : (BEARER.exec(authorization.trim())?.[1] ?? "");
  if (apiKeyInQuery !== undefined && typeof apiKeyInQuery !== "string") {
    throw invalidRequest("api_key", "must be given once");
  }
  if (inHeader !== null && apiKeyInQuery !== undefined && inHeader !== apiKeyInQuery) {
    throw invalidRequest("api_key", "differs from the Authorization header; send one of them");
  }
  return inHeader ?? apiKeyInQuery ?? "";
}

/** The only place where a credential becomes a caller. A bad header never falls through to another credential. */
export async function authenticate(identify: Identify, presented: Presented): Promise<Caller> {
  const credential = credentialOf(presented);
  if (!credential.startsWith("stoa_")) throw refused();
  const caller = await identify.key(credential);
  if (!caller) throw refused();
  return caller;
}

/** Deny by default: what the endpoint does not open to this kind of caller stays shut. */
export function mustBeAllowed(caller: Caller, access: Access): void {
  if (access.who === "public" || caller.kind === "session") return;
  if (caller.kind === "guest") {
    if (access.who === "visitor") return;
    throw new ApiError("UNAUTHORIZED", "A visitor may only look around; sign in for this.");
  }
  if (caller.permissions.has(access.permission)) return;
  throw new ApiError("UNAUTHORIZED", `The credential lacks the permission ${access.permission}.`, {
    required: access.permission,
  });
}
