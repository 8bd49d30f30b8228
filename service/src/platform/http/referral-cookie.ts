import type { FastifyReply, FastifyRequest } from "fastify";
import { setCookies } from "./send-response.ts";

export const REFERRAL_COOKIE = "__Host-ref";
const REFERRAL_SECONDS = 30 * 86_400;
const REFERRAL_CODE = /^[A-Za-z0-9]{1,32}$/;

/** Stores the referral code of a link (`?ref=CODE`) for the purchases of this browser. */
export function storeReferral({ query }: FastifyRequest, reply: FastifyReply): void {
  const { ref } = query as { ref?: unknown };
  if (typeof ref !== "string" || !REFERRAL_CODE.test(ref)) return;
  setCookies(reply, [{ name: REFERRAL_COOKIE, value: ref.toUpperCase(), maxAgeSeconds: REFERRAL_SECONDS }]);
}
