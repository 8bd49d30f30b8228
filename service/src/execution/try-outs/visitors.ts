import { createHmac } from "node:crypto";
import { type Caller, type Context, callerIdOf, isMember } from "../../core/context.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { firstOf } from "../../core/required.ts";
import type { VisitorCount } from "./queries.ts";

/** Guests can drop their cookie, so all guests of a network together have a limit, too. */
const GUESTS_PER_NETWORK = 5;
const DIGEST_BYTES = 16;

/** The counters of a caller for one product and day. Digests of other products and days cannot be linked with them. */
export function visitorCountsOf(
  { config }: Context,
  caller: Caller,
  { ip, productId, today }: { ip: string; productId: string; today: string },
): VisitorCount[] {
  const digestOf = (visitor: string) =>
    createHmac("sha256", firstOf(config.sessionKeys))
      .update(`try-outs ${productId} ${today} ${visitor}`)
      .digest()
      .subarray(0, DIGEST_BYTES)
      .toString("hex");
  const own = {
    visitor: digestOf(`${caller.kind === "guest" ? "guest" : "user"} ${callerIdOf(caller)}`),
    factor: 1,
  };
  const network = isMember(caller) ? null : networkUnlessLoopback(ip);
  return network === null
    ? [own]
    : [own, { visitor: digestOf(`network ${network}`), factor: GUESTS_PER_NETWORK }];
}
